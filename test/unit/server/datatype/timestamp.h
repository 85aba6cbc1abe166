#ifndef TIMESTAMP_H
#define TIMESTAMP_H

typedef int64 TimestampTz;

#endif
