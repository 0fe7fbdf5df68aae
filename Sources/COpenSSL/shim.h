#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <stdbool.h>

// Where the linker puts what a dynamic loader needs: nowhere in a fully static program.
extern const char _DYNAMIC[] __attribute__((weak, visibility("hidden")));

static inline bool credmgr_is_fully_static(void) { return _DYNAMIC == 0; }
