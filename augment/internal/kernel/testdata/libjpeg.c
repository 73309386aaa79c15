/* Prints the CRC-32 of what libjpeg-turbo makes of inputs that golden_test.go
 * and color_test.go make in the same way. The inner functions are reached in the static library:
 *
 *   cc -O2 -o libjpeg libjpeg.c /usr/lib/x86_64-linux-gnu/libjpeg.a && ./libjpeg
 *
 * (Debian 12: libjpeg62-turbo-dev 2.1.5; a CPU with AVX2.)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>

void jsimd_idct_islow_avx2(void *, JCOEFPTR, JSAMPARRAY, JDIMENSION);
void jsimd_idct_4x4_sse2(void *, JCOEFPTR, JSAMPARRAY, JDIMENSION);
void jsimd_idct_2x2_sse2(void *, JCOEFPTR, JSAMPARRAY, JDIMENSION);
void jpeg_idct_1x1(j_decompress_ptr, jpeg_component_info *, JCOEFPTR, JSAMPARRAY, JDIMENSION);
void jsimd_h2v1_fancy_upsample_avx2(int, JDIMENSION, JSAMPARRAY, JSAMPARRAY *);
void jsimd_h2v2_fancy_upsample_avx2(int, JDIMENSION, JSAMPARRAY, JSAMPARRAY *);
void jsimd_ycc_rgb_convert_avx2(JDIMENSION, JSAMPIMAGE, JDIMENSION, JSAMPARRAY, int);

#define ALIGNED __attribute__((aligned(32)))

static uint32_t state, table[256];

static uint32_t draw(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 16;
}

static uint32_t crc(uint32_t c, const unsigned char *p, size_t n) {
  for (c = ~c; n--;) c = table[(c ^ *p++) & 255] ^ (c >> 8);
  return ~c;
}

static int16_t coefs[64] ALIGNED, quant[64] ALIGNED;
static unsigned char out[8][8];
static JSAMPROW rows[8];

/* kind 0: what an encoder may write; 1: anything; 2: anything in the first row, and half the time one more. */
static void block(int kind) {
  int k, more;
  memset(coefs, 0, sizeof coefs);
  for (k = 0; k < 64; k++) quant[k] = kind == 0 ? 1 + draw() % (2 + k) : draw();
  switch (kind) {
  case 0:
    coefs[0] = ((int)(draw() % 2048) - 1024) / quant[0];
    for (more = draw() % 20; more > 0; more--) {
      k = 1 + draw() % 63;
      coefs[k] = ((int)(draw() % 401) - 200) / quant[k];
    }
    break;
  case 1:
    for (k = 0; k < 64; k++) coefs[k] = draw();
    break;
  case 2:
    for (k = 0; k < 8; k++) coefs[k] = draw();
    if (draw() % 2) {
      k = 8 + draw() % 56;
      coefs[k] = draw();
    }
    break;
  }
}

static void idct(int size) {
  struct jpeg_decompress_struct cinfo;
  struct jpeg_error_mgr err;
  jpeg_component_info comp;
  static unsigned char limit[256 + 128 + 1024];
  int kind, i, y;
  cinfo.err = jpeg_std_error(&err);
  for (i = 0; i < 256; i++) limit[256 + i] = i; /* as jdmaster.c prepares it; jpeg_idct_1x1 looks from 128 on */
  for (i = 128; i < 512; i++) limit[256 + 128 + i] = 255;
  for (i = 0; i < 128; i++) limit[256 + 128 + 896 + i] = i;
  cinfo.sample_range_limit = limit + 256;
  comp.dct_table = quant;
  for (kind = 0; kind < 3; kind++) {
    uint32_t c = 0;
    state = 1;
    for (i = 0; i < 20000; i++) {
      block(kind);
      switch (size) {
      case 8: jsimd_idct_islow_avx2(quant, coefs, rows, 0); break;
      case 4: jsimd_idct_4x4_sse2(quant, coefs, rows, 0); break;
      case 2: jsimd_idct_2x2_sse2(quant, coefs, rows, 0); break;
      case 1: jpeg_idct_1x1(&cinfo, &comp, coefs, rows, 0); break;
      }
      for (y = 0; y < size; y++) c = crc(c, out[y], size);
    }
    printf("%dx%d kind %d: %#010x\n", size, size, kind, c);
  }
}

static void upsample(void) {
  static unsigned char in[3][256] ALIGNED, wide[2][512] ALIGNED;
  JSAMPROW src[3] = {in[0], in[1], in[2]}, dst[2] = {wide[0], wide[1]};
  JSAMPARRAY to = dst;
  uint32_t h2v1 = 0, h2v2 = 0;
  int w, i;
  state = 1;
  for (w = 3; w <= 200; w++) {
    for (i = 0; i < 3 * w; i++) in[i / w][i % w] = draw();
    jsimd_h2v1_fancy_upsample_avx2(1, w, src + 1, &to);
    h2v1 = crc(h2v1, wide[0], 2 * w);
    jsimd_h2v2_fancy_upsample_avx2(2, w, src + 1, &to);
    h2v2 = crc(crc(h2v2, wide[0], 2 * w), wide[1], 2 * w);
  }
  printf("h2v1: %#010x\nh2v2: %#010x\n", h2v1, h2v2);
}

static void color(void) {
  static unsigned char y[256] ALIGNED, cb[256] ALIGNED, cr[256] ALIGNED, rgb[768] ALIGNED;
  JSAMPROW py = y, pb = cb, pr = cr, to = rgb;
  JSAMPARRAY planes[3] = {&py, &pb, &pr};
  uint32_t c = 0;
  int u, v, i;
  for (i = 0; i < 256; i++) y[i] = i;
  for (u = 0; u < 256; u++)
    for (v = 0; v < 256; v++) {
      memset(cb, u, 256);
      memset(cr, v, 256);
      jsimd_ycc_rgb_convert_avx2(256, planes, 0, &to, 1);
      c = crc(c, rgb, 768);
    }
  printf("rgb: %#010x\n", c);
}

int main(void) {
  int i, j;
  for (i = 0; i < 256; i++) {
    uint32_t c = i;
    for (j = 0; j < 8; j++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  for (i = 0; i < 8; i++) rows[i] = out[i];
  idct(8);
  idct(4);
  idct(2);
  idct(1);
  upsample();
  color();
  return 0;
}
