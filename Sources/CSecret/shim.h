#ifndef CREDMGR_CSECRET_H
#define CREDMGR_CSECRET_H

// libsecret without its headers, loaded when it is needed: a program that is linked with it does not even start where it
// is missing, and its headers bring those of GLib, whose compiler options the package manager does not take.
// What is declared here is libsecret's public binary interface, version 0.18 and later (soname libsecret-1.so.0).

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CSecretService CSecretService;
typedef struct CSecretItem CSecretItem;
typedef struct CSecretValue CSecretValue;
typedef struct CSecretCollection CSecretCollection;
typedef struct CSecretTable CSecretTable;

/// GError.
typedef struct {
  uint32_t domain;
  int code;
  char *message;
} CSecretError;

/// GList.
typedef struct CSecretList {
  void *data;
  struct CSecretList *next;
  struct CSecretList *previous;
} CSecretList;

/// SecretSchema.
typedef struct {
  const char *name;
  int flags;
  struct {
    const char *name;
    int type;
  } attributes[32];
  int reserved;
  void *more[7];
} CSecretSchema;

/// What an item of ours is found by.
static inline const CSecretSchema *csecret_schema(void) {
  static const CSecretSchema schema = {"net.credmgr.VaultKey", 0, {{"vault-key", 0}}, 0, {0}};
  return &schema;
}

enum { CSECRET_OPEN_SESSION = 2, CSECRET_LOAD_SECRETS = 8 };

/// The functions of the library; the names are theirs.
typedef struct {
  CSecretService *(*secret_service_get_sync)(int flags, void *cancellable, CSecretError **error);
  CSecretList *(*secret_service_search_sync)(
    CSecretService *service, const CSecretSchema *schema, CSecretTable *attributes, int flags, void *cancellable,
    CSecretError **error);
  int (*secret_service_store_sync)(
    CSecretService *service, const CSecretSchema *schema, CSecretTable *attributes, const char *collection,
    const char *label, CSecretValue *value, void *cancellable, CSecretError **error);
  int (*secret_service_clear_sync)(
    CSecretService *service, const CSecretSchema *schema, CSecretTable *attributes, void *cancellable,
    CSecretError **error);
  CSecretCollection *(*secret_collection_for_alias_sync)(
    CSecretService *service, const char *alias, int flags, void *cancellable, CSecretError **error);
  int (*secret_collection_get_locked)(CSecretCollection *collection);
  int (*secret_item_get_locked)(CSecretItem *item);
  CSecretValue *(*secret_item_get_secret)(CSecretItem *item);
  CSecretValue *(*secret_value_new)(const char *secret, ptrdiff_t count, const char *content_type);
  const char *(*secret_value_get)(CSecretValue *value, size_t *count);
  void (*secret_value_unref)(CSecretValue *value);
  uint32_t (*secret_error_get_quark)(void);
  uint32_t (*g_dbus_error_quark)(void);
  CSecretTable *(*g_hash_table_new)(void *hash, void *equal);
  int (*g_hash_table_insert)(CSecretTable *table, void *key, void *value);
  void (*g_hash_table_unref)(CSecretTable *table);
  void *g_str_hash;
  void *g_str_equal;
  void (*g_object_unref)(void *object);
  void (*g_list_free)(CSecretList *list);
  void (*g_error_free)(CSecretError *error);
} CSecretLibrary;

/// Fills in all functions; 0 if the library, or one of them, is not there. Those of GLib are found along with it.
static inline int csecret_load(CSecretLibrary *library) {
  void *handle = dlopen("libsecret-1.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return 0;
  // POSIX demands that a pointer to a function fits into what dlsym answers.
#define CSECRET_LOAD(name) \
  if (!(*(void **)&library->name = dlsym(handle, #name))) return 0;
  CSECRET_LOAD(secret_service_get_sync)
  CSECRET_LOAD(secret_service_search_sync)
  CSECRET_LOAD(secret_service_store_sync)
  CSECRET_LOAD(secret_service_clear_sync)
  CSECRET_LOAD(secret_collection_for_alias_sync)
  CSECRET_LOAD(secret_collection_get_locked)
  CSECRET_LOAD(secret_item_get_locked)
  CSECRET_LOAD(secret_item_get_secret)
  CSECRET_LOAD(secret_value_new)
  CSECRET_LOAD(secret_value_get)
  CSECRET_LOAD(secret_value_unref)
  CSECRET_LOAD(secret_error_get_quark)
  CSECRET_LOAD(g_dbus_error_quark)
  CSECRET_LOAD(g_hash_table_new)
  CSECRET_LOAD(g_hash_table_insert)
  CSECRET_LOAD(g_hash_table_unref)
  CSECRET_LOAD(g_str_hash)
  CSECRET_LOAD(g_str_equal)
  CSECRET_LOAD(g_object_unref)
  CSECRET_LOAD(g_list_free)
  CSECRET_LOAD(g_error_free)
#undef CSECRET_LOAD
  return 1;
}

#endif
