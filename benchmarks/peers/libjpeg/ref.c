/*
 * ref: what libjpeg makes of a JPEG, and how fast.
 *
 *   ref version            "libjpeg-turbo 2.1.5"
 *   ref show FILE          the header as text: size, components, colour space, sampling
 *   ref coefs FILE         quantised coefficients
 *   ref planes FILE [S]    samples of each component before upsampling, at 1/S (1, 2, 4, 8)
 *   ref rgb FILE [S]       pixels at 1/S: RGB, gray as one channel, CMYK and YCCK as CMYK as stored
 *   ref crop FILE X Y W H  those pixels of a rectangle, by jpeg_crop_scanline and jpeg_skip_scanlines
 *   ref bench LIST         a server for measurements, see serve()
 *
 * Always: the accurate integer inverse DCT (ISLOW), fancy upsampling, no block smoothing. Damage does not stop it: the
 * number of libjpeg's warnings goes to standard error as "warnings N". An error that libjpeg cannot get over is printed
 * there and ends the program with 1.
 *
 * A dump is, for each component or once, a line of text and raw bytes behind it:
 *
 *   coefs   "component I WIDTH HEIGHT\n"  in blocks (width_in_blocks, height_in_blocks: without the padding to whole
 *           MCUs); blocks by rows, each 64 int16, little-endian, row by row (not in zigzag)
 *   planes  "component I WIDTH HEIGHT\n"  in samples (downsampled_width, downsampled_height); bytes by rows
 *   rgb     "pixels WIDTH HEIGHT CHANNELS\n"; bytes by rows, channels interleaved
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>
#include <jerror.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

struct faults {
	struct jpeg_error_mgr base;
	jmp_buf escape;
};

static void escape(j_common_ptr c)
{
	longjmp(((struct faults *)c->err)->escape, 1);
}

static void count_only(j_common_ptr c, int level)
{
	if (level < 0)
		c->err->num_warnings++;
}

static void die(const char *what, const char *which)
{
	fprintf(stderr, "ref: %s %s\n", what, which);
	exit(2);
}

static void *take(size_t n)
{
	void *p = calloc(n ? n : 1, 1);
	if (!p)
		die("no memory", "");
	return p;
}

struct file {
	unsigned char *bytes;
	size_t size;
	JDIMENSION x, y, w, h; /* the crop of a measurement */
};

static struct file load(const char *path)
{
	struct file f = {0};
	FILE *in = fopen(path, "rb");
	if (!in || fseek(in, 0, SEEK_END) || (long)(f.size = ftell(in)) < 0)
		die("cannot read", path);
	rewind(in);
	f.bytes = take(f.size);
	if (fread(f.bytes, 1, f.size, in) != f.size)
		die("cannot read", path);
	fclose(in);
	return f;
}

static void open_header(struct jpeg_decompress_struct *c, const struct file *f, unsigned scale)
{
	jpeg_mem_src(c, f->bytes, f->size);
	jpeg_read_header(c, TRUE);
	c->scale_num = 1;
	c->scale_denom = scale;
	c->dct_method = JDCT_ISLOW;
	c->do_fancy_upsampling = TRUE;
	c->do_block_smoothing = FALSE;
	if (c->jpeg_color_space == JCS_CMYK || c->jpeg_color_space == JCS_YCCK)
		c->out_color_space = JCS_CMYK;
	else if (c->jpeg_color_space != JCS_GRAYSCALE && c->num_components == 3)
		c->out_color_space = JCS_RGB;
}

/* --- dumps --- */

static const char *space_name(J_COLOR_SPACE s)
{
	switch (s) {
	case JCS_GRAYSCALE: return "gray";
	case JCS_RGB: return "RGB";
	case JCS_YCbCr: return "YCbCr";
	case JCS_CMYK: return "CMYK";
	case JCS_YCCK: return "YCCK";
	default: return "unknown";
	}
}

static void show(struct jpeg_decompress_struct *c, const struct file *f)
{
	open_header(c, f, 1);
	printf("%u %u %d %s %s", c->image_width, c->image_height, c->num_components, space_name(c->jpeg_color_space),
	       c->progressive_mode ? "progressive" : "sequential");
	for (int i = 0; i < c->num_components; i++)
		printf(" %dx%d", c->comp_info[i].h_samp_factor, c->comp_info[i].v_samp_factor);
	printf("\n");
}

static void dump_coefs(struct jpeg_decompress_struct *c, const struct file *f)
{
	open_header(c, f, 1);
	jvirt_barray_ptr *arrays = jpeg_read_coefficients(c);
	for (int i = 0; i < c->num_components; i++) {
		jpeg_component_info *comp = &c->comp_info[i];
		printf("component %d %u %u\n", i, comp->width_in_blocks, comp->height_in_blocks);
		for (JDIMENSION y = 0; y < comp->height_in_blocks; y++) {
			JBLOCKARRAY row = c->mem->access_virt_barray((j_common_ptr)c, arrays[i], y, 1, FALSE);
			for (JDIMENSION x = 0; x < comp->width_in_blocks; x++)
				for (int k = 0; k < DCTSIZE2; k++) {
					unsigned v = (unsigned)row[0][x][k];
					putchar(v & 255);
					putchar(v >> 8 & 255);
				}
		}
	}
	jpeg_finish_decompress(c);
}

/* Buffers for one iMCU row after another of raw data; stride is in samples. */
struct planes {
	JSAMPLE *bytes[MAX_COMPONENTS];
	JSAMPROW *rows[MAX_COMPONENTS];
	size_t stride[MAX_COMPONENTS];
};

static void make_planes(struct jpeg_decompress_struct *c, struct planes *p)
{
	JDIMENSION lines = c->max_v_samp_factor * c->min_DCT_scaled_size;
	JDIMENSION turns = (c->output_height + lines - 1) / lines;
	for (int i = 0; i < c->num_components; i++) {
		jpeg_component_info *comp = &c->comp_info[i];
		size_t rows = (size_t)turns * comp->v_samp_factor * comp->DCT_scaled_size;
		p->stride[i] = ((size_t)comp->width_in_blocks + 2 * MAX_SAMP_FACTOR) * DCTSIZE;
		p->bytes[i] = take(rows * p->stride[i] + 64);
		p->rows[i] = take(rows * sizeof(JSAMPROW));
		for (size_t y = 0; y < rows; y++)
			p->rows[i][y] = p->bytes[i] + y * p->stride[i];
	}
}

static void free_planes(struct jpeg_decompress_struct *c, struct planes *p)
{
	for (int i = 0; i < c->num_components; i++) {
		free(p->bytes[i]);
		free(p->rows[i]);
	}
}

static void read_planes(struct jpeg_decompress_struct *c, struct planes *p)
{
	JDIMENSION lines = c->max_v_samp_factor * c->min_DCT_scaled_size;
	JSAMPARRAY at[MAX_COMPONENTS];
	for (JDIMENSION turn = 0; c->output_scanline < c->output_height; turn++) {
		for (int i = 0; i < c->num_components; i++)
			at[i] = p->rows[i] + (size_t)turn * c->comp_info[i].v_samp_factor * c->comp_info[i].DCT_scaled_size;
		jpeg_read_raw_data(c, at, lines);
	}
}

static void dump_planes(struct jpeg_decompress_struct *c, const struct file *f, unsigned scale)
{
	struct planes p;
	open_header(c, f, scale);
	c->raw_data_out = TRUE;
	jpeg_start_decompress(c);
	make_planes(c, &p);
	read_planes(c, &p);
	for (int i = 0; i < c->num_components; i++) {
		jpeg_component_info *comp = &c->comp_info[i];
		printf("component %d %u %u\n", i, comp->downsampled_width, comp->downsampled_height);
		for (JDIMENSION y = 0; y < comp->downsampled_height; y++)
			fwrite(p.rows[i][y], 1, comp->downsampled_width, stdout);
	}
	free_planes(c, &p);
	jpeg_finish_decompress(c);
}

static void dump_pixels(struct jpeg_decompress_struct *c, const struct file *f, unsigned scale)
{
	open_header(c, f, scale);
	jpeg_start_decompress(c);
	size_t stride = (size_t)c->output_width * c->output_components;
	JSAMPROW row = take(stride + 64);
	printf("pixels %u %u %d\n", c->output_width, c->output_height, c->output_components);
	while (c->output_scanline < c->output_height) {
		jpeg_read_scanlines(c, &row, 1);
		fwrite(row, 1, stride, stdout);
	}
	free(row);
	jpeg_finish_decompress(c);
}

/*
 * crop starts a decode and reads the rows of a rectangle into row, one over the other, or prints them. libjpeg widens the
 * rectangle to whole iMCUs to the left; what is printed is what was asked for. At its rims the pixels are not quite those of
 * the whole picture: chroma is upsampled there without its neighbours.
 */
static void crop(struct jpeg_decompress_struct *c, const struct file *f, JSAMPROW *row, size_t *have, int print)
{
	open_header(c, f, 1);
	jpeg_start_decompress(c);
	JDIMENSION x = f->x, w = f->w;
	jpeg_crop_scanline(c, &x, &w);
	size_t need = (size_t)c->output_width * c->output_components + 64;
	if (need > *have) {
		free(*row);
		*row = take(*have = need);
	}
	if (f->y)
		jpeg_skip_scanlines(c, f->y);
	while (c->output_scanline < f->y + f->h && c->output_scanline < c->output_height) {
		jpeg_read_scanlines(c, row, 1);
		if (print)
			fwrite(*row + (size_t)(f->x - x) * c->output_components, c->output_components, f->w, stdout);
	}
	jpeg_abort_decompress(c);
}

static void dump_crop(struct jpeg_decompress_struct *c, const struct file *f)
{
	JSAMPROW row = NULL;
	size_t have = 0;
	jpeg_mem_src(c, f->bytes, f->size);
	jpeg_read_header(c, TRUE);
	if (!f->w || !f->h || f->w > c->image_width || f->x > c->image_width - f->w || f->h > c->image_height ||
	    f->y > c->image_height - f->h)
		die("the rectangle is outside of", "the picture");
	int channels = c->jpeg_color_space == JCS_GRAYSCALE ? 1 : c->num_components;
	jpeg_abort_decompress(c);
	printf("pixels %u %u %d\n", f->w, f->h, channels);
	crop(c, f, &row, &have, 1);
	free(row);
}

/* --- measurements --- */

/*
 * entropy runs the Huffman stage alone: raw output of components of which none is wanted, so that coefficients are
 * decoded and stored in the block buffer of the decoder, and no inverse DCT follows. coefs, below, is the other way, by
 * jpeg_read_coefficients, which keeps those of the whole picture and is slower.
 */
static void entropy(struct jpeg_decompress_struct *c, const struct file *f)
{
	struct planes p;
	open_header(c, f, 1);
	c->raw_data_out = TRUE;
	jpeg_start_decompress(c);
	for (int i = 0; i < c->num_components; i++)
		c->comp_info[i].component_needed = FALSE;
	memset(&p, 0, sizeof p);
	read_planes(c, &p);
	jpeg_abort_decompress(c);
}

static void coefs(struct jpeg_decompress_struct *c, const struct file *f)
{
	open_header(c, f, 1);
	jpeg_read_coefficients(c);
	jpeg_abort_decompress(c);
}

static void full(struct jpeg_decompress_struct *c, const struct file *f, JSAMPROW *buffer, size_t *have)
{
	open_header(c, f, 1);
	jpeg_start_decompress(c);
	size_t stride = (size_t)c->output_width * c->output_components;
	if (stride * c->output_height + 64 > *have) {
		free(*buffer);
		*buffer = take(*have = stride * c->output_height + 64);
	}
	while (c->output_scanline < c->output_height) {
		JSAMPROW rows[8];
		for (int i = 0; i < 8; i++)
			rows[i] = *buffer + stride * (c->output_scanline + (JDIMENSION)i < c->output_height ? c->output_scanline + i : 0);
		jpeg_read_scanlines(c, rows, 8);
	}
	jpeg_finish_decompress(c);
}

static double seconds(clockid_t which)
{
	struct timespec t;
	clock_gettime(which, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct file *load_list(const char *path, size_t *count, double *pixels, double *crops)
{
	FILE *in = fopen(path, "r");
	struct file *files = NULL;
	char line[4096], name[4096];
	*count = 0;
	*pixels = *crops = 0;
	if (!in)
		die("cannot read", path);
	while (fgets(line, sizeof line, in)) {
		unsigned x, y, w, h;
		if (sscanf(line, "%u %u %u %u %4095[^\n]", &x, &y, &w, &h, name) != 5)
			die("a line is no \"X Y W H FILE\":", line);
		files = realloc(files, (*count + 1) * sizeof *files);
		if (!files)
			die("no memory", "");
		files[*count] = load(name);
		files[*count].x = x, files[*count].y = y, files[*count].w = w, files[*count].h = h;
		*crops += (double)w * h;
		++*count;
	}
	fclose(in);
	return files;
}

/*
 * serve loads the files of LIST (lines of "X Y W H FILE"), prints {"ready":..., "images":N, "pixels":P, "crop_pixels":Q},
 * and then answers each line "OP [PASSES]" on standard input by a line of JSON on standard output: how long it took to
 * run OP over all files, PASSES times. So whoever measures two programs can let them take turns.
 *   entropy  the Huffman stage alone       coefs  jpeg_read_coefficients
 *   full     to RGB                        crop   the rectangle alone, to RGB
 */
static int serve(struct jpeg_decompress_struct *c, struct faults *err, const char *list)
{
	size_t count, have = 0;
	double pixels, crops;
	JSAMPROW buffer = NULL;
	char line[256], op[32];
	struct file *files = load_list(list, &count, &pixels, &crops);
	if (setjmp(err->escape)) {
		char text[JMSG_LENGTH_MAX];
		err->base.format_message((j_common_ptr)c, text);
		die("libjpeg:", text);
	}
	for (size_t i = 0; i < count; i++) {
		struct file *f = &files[i];
		open_header(c, f, 1);
		if (!f->w || !f->h || f->w > c->image_width || f->x > c->image_width - f->w || f->h > c->image_height ||
		    f->y > c->image_height - f->h)
			die("a rectangle is outside of", "its picture");
		pixels += (double)c->image_width * c->image_height;
		jpeg_abort_decompress(c);
	}
	printf("{\"ready\":\"libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION) "\",\"images\":%zu,\"pixels\":%.0f,\"crop_pixels\":%.0f}\n", count, pixels, crops);
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		int passes = 1;
		if (sscanf(line, "%31s %d", op, &passes) < 1)
			continue;
		double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
		for (int pass = 0; pass < passes; pass++)
			for (size_t i = 0; i < count; i++) {
				if (!strcmp(op, "crop"))
					crop(c, &files[i], &buffer, &have, 0);
				else if (!strcmp(op, "full"))
					full(c, &files[i], &buffer, &have);
				else if (!strcmp(op, "entropy"))
					entropy(c, &files[i]);
				else if (!strcmp(op, "coefs"))
					coefs(c, &files[i]);
				else
					die("no such measurement:", op);
			}
		wall = seconds(CLOCK_MONOTONIC) - wall;
		cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
		printf("{\"op\":\"%s\",\"passes\":%d,\"images\":%zu,\"seconds\":%.6f,\"cpu_seconds\":%.6f}\n", op, passes, count * passes, wall, cpu);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct jpeg_decompress_struct c;
	struct faults err;
	const char *op = argc > 1 ? argv[1] : "";
	if (argc == 2 && !strcmp(op, "version"))
		return printf("libjpeg-turbo %s\n", TEXT(LIBJPEG_TURBO_VERSION)) < 0;
	if (argc < 3) {
		fprintf(stderr, "usage: ref version | show FILE | coefs FILE | planes FILE [SCALE] | rgb FILE [SCALE] | crop FILE X Y W H | bench LIST\n");
		return 2;
	}
	c.err = jpeg_std_error(&err.base);
	err.base.error_exit = escape;
	err.base.emit_message = count_only;
	jpeg_create_decompress(&c);
	if (!strcmp(op, "bench"))
		return serve(&c, &err, argv[2]);
	struct file f = load(argv[2]);
	if (setjmp(err.escape)) {
		char text[JMSG_LENGTH_MAX];
		err.base.format_message((j_common_ptr)&c, text);
		fprintf(stderr, "libjpeg: %s\n", text);
		return 1;
	}
	unsigned scale = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	if (!strcmp(op, "show"))
		show(&c, &f);
	else if (!strcmp(op, "coefs"))
		dump_coefs(&c, &f);
	else if (!strcmp(op, "planes"))
		dump_planes(&c, &f, scale);
	else if (!strcmp(op, "rgb"))
		dump_pixels(&c, &f, scale);
	else if (!strcmp(op, "crop") && argc == 7) {
		f.x = atoi(argv[3]), f.y = atoi(argv[4]), f.w = atoi(argv[5]), f.h = atoi(argv[6]);
		dump_crop(&c, &f);
	} else
		die("no such command:", op);
	fprintf(stderr, "warnings %ld\n", err.base.num_warnings);
	if (fflush(stdout))
		die("cannot write", "the output");
	return 0;
}
