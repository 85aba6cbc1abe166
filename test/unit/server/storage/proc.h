#ifndef PROC_H
#define PROC_H

typedef struct PGPROC PGPROC;

#endif
