#ifndef CREDMGR_CNETTLE_H
#define CREDMGR_CNETTLE_H

#include <nettle/ecc-curve.h>
#include <nettle/ecdsa.h>
#include <stdlib.h>
#include <string.h>

// Weak references, as in COpenSSL/shim.h, for the opposite case: only the static program and the tests are linked with
// libnettle. In other programs these functions are null, and OpenSSL has to sign.
#pragma weak __gmp_set_memory_functions
#pragma weak nettle_ecc_ecdsa_sign
#pragma weak nettle_ecc_ecdsa_sign_itch
#pragma weak nettle_ecc_point_mul_g
#pragma weak nettle_get_secp_256r1

#define CNETTLE_BYTES 32
#define CNETTLE_LIMBS (256 / GMP_NUMB_BITS)

static inline int cnettle_is_linked(void) { return nettle_ecc_ecdsa_sign != NULL; }

static inline void cnettle_read(const uint8_t *bytes, mp_limb_t *limbs) {
  memset(limbs, 0, CNETTLE_BYTES);
  for (size_t i = 0; i < CNETTLE_BYTES; i++)
    limbs[i / sizeof *limbs] |= (mp_limb_t)bytes[CNETTLE_BYTES - 1 - i] << 8 * (i % sizeof *limbs);
}

static inline void cnettle_write(const mp_limb_t *limbs, uint8_t *bytes) {
  for (size_t i = 0; i < CNETTLE_BYTES; i++)
    bytes[CNETTLE_BYTES - 1 - i] = (uint8_t)(limbs[i / sizeof *limbs] >> 8 * (i % sizeof *limbs));
}

/// Writes R and S, 32 bytes each. The private key and the nonce are numbers of 32 bytes between 0 and the order of the
/// curve.
static inline void cnettle_sign(const uint8_t *key, const uint8_t *nonce, const uint8_t *digest, uint8_t *signature) {
  const struct ecc_curve *curve = nettle_get_secp_256r1();
  mp_limb_t numbers[4][CNETTLE_LIMBS], scratch[nettle_ecc_ecdsa_sign_itch(curve)];
  cnettle_read(key, numbers[0]);
  cnettle_read(nonce, numbers[1]);
  nettle_ecc_ecdsa_sign(curve, numbers[0], numbers[1], CNETTLE_BYTES, digest, numbers[2], numbers[3], scratch);
  cnettle_write(numbers[2], signature);
  cnettle_write(numbers[3], signature + CNETTLE_BYTES);
  explicit_bzero(numbers, sizeof numbers);
  explicit_bzero(scratch, sizeof scratch);
}

static inline void cnettle_erase(void *memory, size_t count) {
  explicit_bzero(memory, count);
  free(memory);
}

/// Writes the coordinates of the public key, 32 bytes each.
static inline void cnettle_public_key(const uint8_t *key, uint8_t *coordinates) {
  mp_limb_t number[CNETTLE_LIMBS], pair[2 * CNETTLE_LIMBS];
  struct ecc_scalar scalar = {nettle_get_secp_256r1(), number};
  struct ecc_point point = {scalar.ecc, pair};
  cnettle_read(key, number);
  // The multiplication allocates its scratch.
  __gmp_set_memory_functions(NULL, NULL, cnettle_erase);
  nettle_ecc_point_mul_g(&point, &scalar);
  cnettle_write(pair, coordinates);
  cnettle_write(pair + CNETTLE_LIMBS, coordinates + CNETTLE_BYTES);
  explicit_bzero(number, sizeof number);
}

#endif
