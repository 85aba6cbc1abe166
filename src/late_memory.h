/*-------------------------------------------------------------------------
 *
 * late_memory.h
 *	  Shared memory and the sampler where the library is not preloaded.
 *
 * Since PostgreSQL 17 processes can get shared memory while the server runs,
 * under a name.  A session that loads the library when it begins, or by LOAD,
 * is counted: it joins the memory, and makes it if there is none.  The sampler
 * is a dynamic worker, which such a session starts if there is none.  Some time
 * after the last such session has ended, the sampler saves the figures, frees
 * the memory and ends.
 *
 * What cannot be had is said in the server's log and in pgnetlat_info, and is
 * tried again, at most once a minute.  No session has an error because of it.
 *
 * Any other process that has loaded the library, for example because it calls
 * one of our functions, finds the memory if there is some, and is not counted.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_LATE_MEMORY_H
#define PGNETLAT_LATE_MEMORY_H

/* This process has loaded the library itself. */
extern bool late_is_used;

/* For readers: is there memory, found now if need be? */
extern bool late_memory_find(void);

/* What is missing; NULL: nothing. */
extern const char *late_memory_problem(void);

/* Functions for counted sessions */
extern bool late_memory_join(void);
extern bool late_memory_lacks_sampler(void);

/* Functions for the sampler */
extern bool late_memory_serve(void);
extern void late_memory_stop_serving(void);
extern bool late_memory_retire(void);
extern void late_memory_at_shutdown(void);

#endif							/* PGNETLAT_LATE_MEMORY_H */
