#ifndef CREDMGR_CQRENCODE_H
#define CREDMGR_CQRENCODE_H

#include <dlfcn.h>
#include <stddef.h>
#include <qrencode.h>

/// The functions of libqrencode that credmgr calls. The library is loaded, not linked, because few logins show a code.
typedef struct {
  QRcode *(*encode)(const char *text, int version, QRecLevel level);
  void (*free)(QRcode *code);
} credmgr_qr;

/// Fills in all functions; returns 0 if the library is missing.
static inline int credmgr_qr_load(credmgr_qr *qr) {
  void *library = dlopen("libqrencode.so.4", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) return 0;
  qr->encode = dlsym(library, "QRcode_encodeString8bit");
  qr->free = dlsym(library, "QRcode_free");
  return qr->encode && qr->free;
}

#endif
