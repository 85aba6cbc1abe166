#ifndef S_LOCK_H
#define S_LOCK_H

/* A process that waits lets others run. */
#define pg_spin_delay()					server_step()
#define pg_usleep(microseconds)			server_step()

typedef int SpinDelayStatus;

#define init_local_spin_delay(status)	(*(status) = 0)
#define perform_spin_delay(status)		((void) *(status), server_step())
#define finish_spin_delay(status)		((void) *(status))

#endif
