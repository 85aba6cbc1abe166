#ifndef MEMUTILS_H
#define MEMUTILS_H

#endif
