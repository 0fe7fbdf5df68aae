#ifndef CREDMGR_CPQ_H
#define CREDMGR_CPQ_H

#include <dlfcn.h>
#include <stddef.h>

/// An entry of PQconninfoParse's list, which ends with a null keyword.
typedef struct {
  char *keyword;
  char *envvar;
  char *compiled;
  char *value;
  char *label;
  char *display;
  int size;
} credmgr_pq_option;

typedef void (*credmgr_pq_receiver)(void *context, const void *result);

/// The functions of libpq that credmgr calls. libpq is loaded, not linked, because only shared vaults need it. The types
/// are written here; they are the same since PostgreSQL 9.6.
typedef struct {
  credmgr_pq_option *(*parse)(const char *text, char **error);
  void (*free_options)(credmgr_pq_option *options);
  void (*free_memory)(void *memory);
  void *(*start)(const char *const *keywords, const char *const *values, int expands);
  int (*poll)(void *connection);
  int (*status)(const void *connection);
  int (*socket)(const void *connection);
  char *(*error)(const void *connection);
  int (*set_verbosity)(void *connection, int verbosity);
  void *(*set_receiver)(void *connection, credmgr_pq_receiver receiver, void *context);
  int (*needs_password)(const void *connection);
  int (*uses_tls)(void *connection);
  void (*finish)(void *connection);
  int (*set_nonblocking)(void *connection, int value);
  int (*send)(
    void *connection, const char *command, int count, const unsigned *types, const char *const *values,
    const int *lengths, const int *formats, int result_format);
  int (*flush)(void *connection);
  int (*consume)(void *connection);
  int (*is_busy)(void *connection);
  void *(*result)(void *connection);
  int (*result_status)(const void *result);
  char *(*field)(const void *result, int code);
  int (*rows)(const void *result);
  int (*columns)(const void *result);
  int (*is_null)(const void *result, int row, int column);
  int (*length)(const void *result, int row, int column);
  char *(*value)(const void *result, int row, int column);
  void (*clear)(void *result);
} credmgr_pq;

/// Fills in all functions; returns 0 if the library is missing.
static inline int credmgr_pq_load(credmgr_pq *pq) {
  void *library = dlopen("libpq.so.5", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) return 0;
  pq->parse = dlsym(library, "PQconninfoParse");
  pq->free_options = dlsym(library, "PQconninfoFree");
  pq->free_memory = dlsym(library, "PQfreemem");
  pq->start = dlsym(library, "PQconnectStartParams");
  pq->poll = dlsym(library, "PQconnectPoll");
  pq->status = dlsym(library, "PQstatus");
  pq->socket = dlsym(library, "PQsocket");
  pq->error = dlsym(library, "PQerrorMessage");
  pq->set_verbosity = dlsym(library, "PQsetErrorVerbosity");
  pq->set_receiver = dlsym(library, "PQsetNoticeReceiver");
  pq->needs_password = dlsym(library, "PQconnectionNeedsPassword");
  pq->uses_tls = dlsym(library, "PQsslInUse");
  pq->finish = dlsym(library, "PQfinish");
  pq->set_nonblocking = dlsym(library, "PQsetnonblocking");
  pq->send = dlsym(library, "PQsendQueryParams");
  pq->flush = dlsym(library, "PQflush");
  pq->consume = dlsym(library, "PQconsumeInput");
  pq->is_busy = dlsym(library, "PQisBusy");
  pq->result = dlsym(library, "PQgetResult");
  pq->result_status = dlsym(library, "PQresultStatus");
  pq->field = dlsym(library, "PQresultErrorField");
  pq->rows = dlsym(library, "PQntuples");
  pq->columns = dlsym(library, "PQnfields");
  pq->is_null = dlsym(library, "PQgetisnull");
  pq->length = dlsym(library, "PQgetlength");
  pq->value = dlsym(library, "PQgetvalue");
  pq->clear = dlsym(library, "PQclear");
  void **functions = (void **)pq;
  for (size_t index = 0; index < sizeof *pq / sizeof *functions; index++) {
    if (functions[index] == NULL) return 0;
  }
  return 1;
}

/// Discards the server's notices, which libpq writes to standard error otherwise.
static inline void credmgr_pq_ignore(void *context, const void *result) { (void)context; (void)result; }

static inline void credmgr_pq_silence(credmgr_pq pq, void *connection) {
  pq.set_receiver(connection, credmgr_pq_ignore, NULL);
}

#endif
