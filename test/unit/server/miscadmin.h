#ifndef MISCADMIN_H
#define MISCADMIN_H

extern Oid	MyDatabaseId;

#define check_stack_depth()	((void) 0)

#endif
