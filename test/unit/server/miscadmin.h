#ifndef MISCADMIN_H
#define MISCADMIN_H

extern Oid	MyDatabaseId;

#endif
