#ifndef COMMON_STRING_H
#define COMMON_STRING_H

#include <stdbool.h>

extern bool pg_is_ascii(const char *text);

#endif
