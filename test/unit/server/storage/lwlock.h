#ifndef LWLOCK_H
#define LWLOCK_H

typedef enum LWLockMode
{
	LW_EXCLUSIVE,
	LW_SHARED
} LWLockMode;

typedef struct LWLock
{
	int			held;
} LWLock;

typedef struct LWLockPadded
{
	LWLock		lock;
} LWLockPadded;

extern void LWLockAcquire(LWLock *lock, LWLockMode mode);
extern bool LWLockConditionalAcquire(LWLock *lock, LWLockMode mode);
extern void LWLockRelease(LWLock *lock);

#endif
