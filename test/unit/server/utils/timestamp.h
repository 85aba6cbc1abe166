#ifndef UTILS_TIMESTAMP_H
#define UTILS_TIMESTAMP_H

#include "datatype/timestamp.h"

extern TimestampTz GetCurrentTimestamp(void);

#endif
