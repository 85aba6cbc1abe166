/*-------------------------------------------------------------------------
 *
 * persist.c
 *	  Saves statistics at shutdown and loads them at startup.
 *
 * The postmaster writes the tables after a clean shutdown, never after a
 * crash, to a temporary file that is then renamed.  It reads them when it
 * starts.
 *
 * The file stays until the server is up, which is when the sampler runs or the
 * first session has connected, so that a start that fails (because of an error
 * in pg_hba.conf, for example) loses nothing.  Then it is removed, so that no
 * stale file gets into a base backup, and a crash never brings back old
 * figures.  If there is a file when the server starts after a crash or from a
 * backup, the control file shows that, and the file is not used.
 *
 * If the library is not preloaded, the sampler writes the file when no session
 * is counted any more, and a session that makes the memory anew reads it: the
 * file is as good as on that day, since nothing was counted meanwhile.  A crash
 * makes no difference to that; but the file must not be the copy of a backup.
 *
 * The file has a header, then for each section the number of entries and the
 * entries, and a checksum of it all.  It is for the same library and the same
 * major version on the same machine, which the header shows.  A foreign,
 * truncated or damaged file is logged and discarded.
 *
 * If the checksum is good, figures are not questioned, except that an entry
 * that could make a view raise an error, or show a negative time, is left out.
 * The number of such entries is logged.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "blockers.h"
#include "catalog/pg_control.h"
#include "clients.h"
#include "common/controldata_utils.h"
#include "history.h"
#include "miscadmin.h"
#include "persist.h"
#include "pools.h"
#include "port/pg_crc32c.h"
#include "saved.h"
#include "session_slot.h"
#include "settings.h"
#include "statements.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define PERSIST_FILE		"pg_stat/pgnetlat.stat"
#define PERSIST_MAGIC		0x4C4E4750	/* "PGNL" */
#define PERSIST_LAYOUT		1	/* changes if a structure changes its meaning
								 * but not its size */

#define NUM_SECTIONS		5

typedef struct PersistHeader
{
	uint32		magic;
	uint32		layout;
	uint32		major;
	uint32		entry_size[NUM_SECTIONS];
	TimestampTz reset_timestamp;
	uint64		inode;			/* of this file; copies have others */
} PersistHeader;

/*
 * Has the server been shut down cleanly?  The exit code does not say: it is 0
 * after an immediate shutdown, too, in which backends may have died while they
 * wrote to shared memory or held our locks.  When loading (not "by_now"), a
 * standby's failed start after the shutdown makes no difference: had it come
 * up, there would be no file.
 */
static bool
was_shut_down(bool by_now)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);

	return crc_ok && (control->state == DB_SHUTDOWNED ||
					  control->state == DB_SHUTDOWNED_IN_RECOVERY ||
					  (!by_now && control->state == DB_IN_ARCHIVE_RECOVERY));
}

/* Remove the file: the server is up, and the file out of date. */
void
persist_remove_file(void)
{
	if (access(PERSIST_FILE, F_OK) == 0)
		(void) durable_unlink(PERSIST_FILE, LOG);
}

/* What is saved, in the order of the file; "sum": of counts in a section. */
static const struct
{
	uint32		entry_size;
	void	   *(*copy) (int64 length, int *count); /* palloc'd */
	bool		(*restore) (const void *content, double *sum);	/* false: damaged */
}			sections[NUM_SECTIONS] = {
	{sizeof(StatementEntry), statements_copy, statements_restore},
	{sizeof(ClientEntry), clients_copy, clients_restore},
	{sizeof(HistoryInterval), history_copy, history_restore},
	{sizeof(BlockerEntry), blockers_copy, blockers_restore},
	{sizeof(Pool), pools_copy, pools_restore},
};

/* Make the header of this server's files. */
static void
make_header(PersistHeader *header)
{
	memset(header, 0, sizeof(*header));
	header->magic = PERSIST_MAGIC;
	header->layout = PERSIST_LAYOUT;
	header->major = PG_VERSION_NUM / 100;
	for (int i = 0; i < NUM_SECTIONS; i++)
		header->entry_size[i] = sections[i].entry_size;
	header->reset_timestamp = slot_control->reset_timestamp;
}

/* Write, and update the checksum. */
static bool
write_chunk(FILE *file, const void *data, size_t size, pg_crc32c *crc)
{
	COMP_CRC32C(*crc, data, size);
	return size == 0 || fwrite(data, size, 1, file) == 1;
}

static bool
write_file(FILE *file)
{
	PersistHeader header;
	struct stat st;
	pg_crc32c	crc;
	bool		written;

	if (fstat(fileno(file), &st) != 0)
		return false;
	INIT_CRC32C(crc);
	make_header(&header);
	header.inode = st.st_ino;
	written = write_chunk(file, &header, sizeof(header), &crc);
	for (int i = 0; written && i < NUM_SECTIONS; i++)
	{
		int			count;
		void	   *entries = sections[i].copy(0, &count);
		int64		saved = count;

		written = write_chunk(file, &saved, sizeof(saved), &crc) &&
			write_chunk(file, entries, (size_t) count * sections[i].entry_size, &crc);
		pfree(entries);
	}
	FIN_CRC32C(crc);
	return written && fwrite(&crc, sizeof(crc), 1, file) == 1;
}

static void
save(void)
{
	FILE	   *file;
	bool		written;

	if (!pgnetlat_save)
	{
		persist_remove_file();
		return;
	}
	file = AllocateFile(PERSIST_FILE ".tmp", PG_BINARY_W);
	written = file != NULL && write_file(file);
	if (file != NULL && FreeFile(file) != 0)
		written = false;
	if (!written)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", PERSIST_FILE ".tmp")));
		unlink(PERSIST_FILE ".tmp");
		return;
	}
	(void) durable_rename(PERSIST_FILE ".tmp", PERSIST_FILE, LOG);
}

/*
 * Save everything, as the last thing that the postmaster does; or by the
 * sampler ("is_running"), if no session is counted any more.
 *
 * An error, such as that there is no memory, loses our figures only.  While
 * proc_exit_inprogress is set, core would end the process instead, with
 * status 1, which other extensions take for a crash.
 */
void
persist_save(int code, Datum is_running)
{
	bool		exiting = proc_exit_inprogress;

	if (code != 0)
		return;
	proc_exit_inprogress = false;
	PG_TRY();
	{
		if (DatumGetBool(is_running) || was_shut_down(true))
			save();
	}
	PG_CATCH();
	{
		LWLockReleaseAll();
		EmitErrorReport();
		FlushErrorState();
		unlink(PERSIST_FILE ".tmp");
		ereport(LOG,
				(errmsg("could not write file \"%s\"", PERSIST_FILE),
				 errdetail("Statistics of pgnetlat are lost.")));
	}
	PG_END_TRY();
	proc_exit_inprogress = exiting;
}

/* ---------------------------------------------------------------------------
 * Loading
 * ---------------------------------------------------------------------------
 */

/*
 * Restore what is in a file.  Returns NULL on success, else why not.  If "inode"
 * is not 0, the file must have been written in this place.
 */
static const char *
use_file(FILE *file, size_t size, uint64 inode)
{
	static const char *const damaged = "It is truncated or damaged.";
	PersistHeader expected;
	PersistHeader *header;
	char	   *content;
	char	   *at;
	char	   *end;
	pg_crc32c	crc;
	int			ignored = 0;

	if (size < sizeof(PersistHeader) + sizeof(crc))
		return damaged;
	content = size > MaxAllocSize ? NULL : palloc_extended(size, MCXT_ALLOC_NO_OOM);
	if (content == NULL)
		return "It is too large.";
	if (fread(content, size, 1, file) != 1)
		return damaged;

	header = (PersistHeader *) content;
	make_header(&expected);
	if (memcmp(header, &expected, offsetof(PersistHeader, reset_timestamp)) != 0)
		return "It has a different format, such as that of another version.";
	end = content + size - sizeof(crc);
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, content, end - content);
	FIN_CRC32C(crc);
	if (memcmp(&crc, end, sizeof(crc)) != 0 ||
		!saved_are_figures(&header->reset_timestamp, &header->inode))
		return damaged;
	if (inode != 0 && header->inode != inode)
		return "It was copied, for example with a backup.";

	at = content + sizeof(*header);
	for (int i = 0; i < NUM_SECTIONS; i++)
	{
		int64		count = 0;

		if (end - at >= (ptrdiff_t) sizeof(count))
			memcpy(&count, at, sizeof(count));
		at += sizeof(count);
		/* guards against a bug of ours */
		if (count < 0 || at > end || count > (end - at) / (ptrdiff_t) sections[i].entry_size)
			return damaged;
		for (double counted = 0; count > 0; count--, at += sections[i].entry_size)
		{
			double		sum = counted;

			if (sections[i].restore(at, &sum))
				counted = sum;
			else
				ignored++;
		}
	}
	if (ignored > 0)
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg_plural("ignoring %d damaged entry in file \"%s\"",
							   "ignoring %d damaged entries in file \"%s\"",
							   ignored, ignored, PERSIST_FILE)));
	slot_control->reset_timestamp = header->reset_timestamp;
	pfree(content);
	return NULL;
}

/*
 * Load what was saved.  Never fails: without a good file, statistics start
 * from zero.  If saving is off, a file is ignored, and removed when the server
 * is up.  "at_start": this is the postmaster, and the library is preloaded.
 */
void
persist_load(bool at_start)
{
	FILE	   *file = NULL;
	struct stat st;
	const char *complaint = NULL;

	/* a leftover from a shutdown that was cut short */
	unlink(PERSIST_FILE ".tmp");

	if (!pgnetlat_save)
		return;
	/* opening a pipe would wait for somebody at its other end */
	if (stat(PERSIST_FILE, &st) == 0 && !S_ISREG(st.st_mode))
		complaint = "It is not a regular file.";
	else if ((file = AllocateFile(PERSIST_FILE, PG_BINARY_R)) == NULL)
	{
		if (errno != ENOENT)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not read file \"%s\": %m", PERSIST_FILE)));
		return;
	}
	else
		complaint = !at_start || was_shut_down(false) ?
			use_file(file, st.st_size, at_start ? 0 : st.st_ino) :
			"The server was not shut down cleanly after the file was written.";
	if (file)
		FreeFile(file);
	if (complaint == NULL)
		return;
	ereport(LOG,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("ignoring file \"%s\"", PERSIST_FILE),
			 errdetail("%s  Statistics of pgnetlat start from zero.", complaint)));
	persist_remove_file();
}
