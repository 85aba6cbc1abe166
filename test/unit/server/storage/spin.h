#ifndef SPIN_H
#define SPIN_H

typedef bool slock_t;

#define SpinLockInit(lock)		(*(lock) = false)
#define SpinLockAcquire(lock)	(*(lock) ? abort() : (void) (*(lock) = true))
#define SpinLockRelease(lock)	(*(lock) ? (void) (*(lock) = false) : abort())

#endif
