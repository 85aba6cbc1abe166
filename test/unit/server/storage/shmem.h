#ifndef SHMEM_H
#define SHMEM_H

extern void *ShmemInitStruct(const char *name, Size size, bool *found);

#endif
