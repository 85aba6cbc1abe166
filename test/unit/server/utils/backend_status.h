#ifndef BACKEND_STATUS_H
#define BACKEND_STATUS_H

typedef struct PgBackendStatus PgBackendStatus;

#endif
