#ifndef CREDMGR_CXML_H
#define CREDMGR_CXML_H

#include <dlfcn.h>

// A weak reference links nothing into a static program, where `dlopen` is then null.
#pragma weak dlopen
#pragma weak dlsym

/// The functions of libxml2's reader. The library is loaded, not linked, because few providers answer in XML. Its
/// headers need the 40 MB of ICU's, so the types are written here; they are the same since libxml2 2.6.
typedef struct {
  void (*start)(void);
  void *(*open)(const char *bytes, int count, const char *url, const char *encoding, int options);
  int (*read)(void *reader);
  int (*kind)(void *reader);
  int (*is_empty)(void *reader);
  const unsigned char *(*name)(void *reader);
  const unsigned char *(*value)(void *reader);
  int (*next_attribute)(void *reader);
  int (*is_namespace)(void *reader);
  void (*close)(void *reader);
} credmgr_xml;

static inline int credmgr_xml_can_load(void) { return dlopen != 0 && dlsym != 0; }

/// Fills in all functions; returns 0 if the library is missing.
static inline int credmgr_xml_load(const char *name, credmgr_xml *xml) {
  if (!credmgr_xml_can_load()) return 0;
  void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (library == 0) return 0;
  xml->start = dlsym(library, "xmlInitParser");
  xml->open = dlsym(library, "xmlReaderForMemory");
  xml->read = dlsym(library, "xmlTextReaderRead");
  xml->kind = dlsym(library, "xmlTextReaderNodeType");
  xml->is_empty = dlsym(library, "xmlTextReaderIsEmptyElement");
  xml->name = dlsym(library, "xmlTextReaderConstLocalName");
  xml->value = dlsym(library, "xmlTextReaderConstValue");
  xml->next_attribute = dlsym(library, "xmlTextReaderMoveToNextAttribute");
  xml->is_namespace = dlsym(library, "xmlTextReaderIsNamespaceDecl");
  xml->close = dlsym(library, "xmlFreeTextReader");
  if (!(xml->start && xml->open && xml->read && xml->kind && xml->is_empty && xml->name && xml->value
        && xml->next_attribute && xml->is_namespace && xml->close)) return 0;
  xml->start();
  return 1;
}

#endif
