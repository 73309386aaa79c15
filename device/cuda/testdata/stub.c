/* A driver without a device, for the tests of package cuda. It answers those
 * calls of the CUDA driver API that the package makes. "Device memory" is memory
 * of the host under other addresses; each stream is a thread that does what was
 * put on it in order, and late: a copy reads its source when it runs, whatever
 * kind of memory that is, so that who does not wait is found out.
 *
 * What the real driver forbids, or leaves undefined, is an error here, and is
 * written down besides: stub_report gives these faults to the test.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201, INVALID_HANDLE = 400, LAUNCH_FAILED = 719,
	ALREADY_REGISTERED = 712, NOT_REGISTERED = 713
};

enum { DEVICES = 2, MOST = 1 << 14, PAGE = 4096 };

typedef uint64_t handle;

struct context { int refs; };
struct memory { handle base; size_t size; unsigned char *host; int ctx, live, pending; };
struct range { uintptr_t lo, hi; int ctx, live, pending; };
struct event { int ctx, live; long recorded, completed; };
enum kind { TO_DEVICE, TO_HOST, RECORD, WAIT, QUIT };
struct op {
	enum kind kind;
	unsigned char *host;
	struct memory *mem;
	size_t off, n;
	struct range *pinned;
	struct event *event;
	long serial;
	struct op *next;
};
struct stream { int ctx, live, busy, failed; pthread_t thread; struct op *head, *tail; };

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int initialized;
static struct context contexts[DEVICES + 1]; /* by device and one */
static struct memory memories[MOST];
static struct range ranges[MOST];
static struct event events[MOST];
static struct stream streams[MOST];
static int nmemories, nranges, nevents, nstreams;
static size_t memory_limit, pin_limit;
static int holding, delay_us, fail_copies;
static long order; /* copies done */
static __thread int current;

static struct { char name[64]; int count, fail_at, code; } calls[64];
static int ncalls;
static char report[1 << 16];
static int faults;

static void fault(const char *format, ...) {
	va_list args;
	size_t used = strlen(report);
	faults++;
	va_start(args, format);
	vsnprintf(report + used, sizeof report - used, format, args);
	va_end(args);
	used = strlen(report);
	if (used + 2 < sizeof report)
		strcpy(report + used, "\n");
}

static int slot(const char *name) {
	int i;
	for (i = 0; i < ncalls; i++)
		if (!strcmp(calls[i].name, name))
			return i;
	snprintf(calls[ncalls].name, sizeof calls[0].name, "%s", name);
	return ncalls++;
}

/* enter counts a call, and returns the code with which it is to fail. The
 * lock is held from here to leave. */
static int enter(const char *name) {
	int i;
	pthread_mutex_lock(&mu);
	i = slot(name);
	calls[i].count++;
	if (calls[i].fail_at && --calls[i].fail_at == 0)
		return calls[i].code;
	if (!initialized && strcmp(name, "cuInit") && strncmp(name, "cuGetError", 10))
		return NOT_INITIALIZED;
	return 0;
}

static int leave(int code) {
	pthread_mutex_unlock(&mu);
	return code;
}

/* in_context is what most calls need: a current context that is alive. */
static int in_context(const char *name) {
	if (current > 0 && contexts[current].refs > 0)
		return 1;
	fault("%s: no current context on this thread", name);
	return 0;
}

#define ENTER int code = enter(__func__)
#define ENTER_IN_CONTEXT \
	ENTER; \
	if (!code && !in_context(__func__)) code = INVALID_CONTEXT
#define CHECK if (code) return leave(code)

/* What a test says. */

void stub_reset(void) {
	int i, live = 0;
	pthread_mutex_lock(&mu);
	for (i = 0; i < MOST; i++)
		live += memories[i].live + ranges[i].live + events[i].live + streams[i].live;
	if (!live)
		nmemories = nranges = nevents = nstreams = 0;
	memset(calls, 0, sizeof calls);
	ncalls = faults = holding = delay_us = fail_copies = 0;
	memory_limit = pin_limit = 0;
	order = 0;
	report[0] = 0;
	pthread_mutex_unlock(&mu);
}

void stub_fail(const char *name, int nth, int code) {
	pthread_mutex_lock(&mu);
	int i = slot(name);
	calls[i].fail_at = nth;
	calls[i].code = code;
	pthread_mutex_unlock(&mu);
}

int stub_calls(const char *name) {
	pthread_mutex_lock(&mu);
	int n = calls[slot(name)].count;
	pthread_mutex_unlock(&mu);
	return n;
}

void stub_limit(size_t memory, size_t pin) { memory_limit = memory; pin_limit = pin; }
void stub_delay(int us) { delay_us = us; }
void stub_fail_copies(int on) { fail_copies = on; }

/* stub_hold keeps streams from running, or lets them run. */
void stub_hold(int on) {
	pthread_mutex_lock(&mu);
	holding = on;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mu);
}

int stub_report(char *text, int n) {
	pthread_mutex_lock(&mu);
	snprintf(text, n, "%s", report);
	n = faults;
	pthread_mutex_unlock(&mu);
	return n;
}

/* stub_held counts what lives: kinds are 'm', 'p', 'e', 's' and 'c'; and 'q',
 * copies that were not made yet. */
int stub_held(int kind) {
	int i, n = 0;
	pthread_mutex_lock(&mu);
	switch (kind) {
	case 'm': for (i = 0; i < nmemories; i++) n += memories[i].live; break;
	case 'p': for (i = 0; i < nranges; i++) n += ranges[i].live; break;
	case 'e': for (i = 0; i < nevents; i++) n += events[i].live; break;
	case 's': for (i = 0; i < nstreams; i++) n += streams[i].live; break;
	case 'q': for (i = 0; i < nmemories; i++) n += memories[i].pending; break;
	case 'c': for (i = 0; i <= DEVICES; i++) n += contexts[i].refs; break;
	}
	pthread_mutex_unlock(&mu);
	return n;
}

/* stub_current is the context of the calling thread, 0 for none. */
int stub_current(void) { return current; }

/* Streams. */

static void push(struct stream *s, struct op op) {
	struct op *p = malloc(sizeof *p);
	*p = op;
	p->next = NULL;
	if (s->tail)
		s->tail->next = p;
	else
		s->head = p;
	s->tail = p;
	pthread_cond_broadcast(&changed);
}

static void copy(struct stream *s, struct op *op) {
	if (fail_copies)
		s->failed = 1;
	else if (!op->mem->live)
		fault("a copy runs on memory of the device that was freed");
	else if (op->pinned && !op->pinned->live)
		fault("a copy runs on memory that was unpinned");
	else if (op->kind == TO_DEVICE)
		memcpy(op->mem->host + op->off, op->host, op->n);
	else
		memcpy(op->host, op->mem->host + op->off, op->n);
	op->mem->pending--;
	if (op->pinned)
		op->pinned->pending--;
	order++;
}

static void *run(void *arg) {
	struct stream *s = arg;
	pthread_mutex_lock(&mu);
	for (;;) {
		struct op *op;
		while (!s->head || (holding && s->head->kind != QUIT))
			pthread_cond_wait(&changed, &mu);
		op = s->head;
		s->head = op->next;
		if (!s->head)
			s->tail = NULL;
		s->busy = 1;
		if (op->kind == QUIT) {
			free(op);
			s->busy = 0;
			pthread_mutex_unlock(&mu);
			return NULL;
		}
		if (delay_us && op->kind <= TO_HOST) {
			pthread_mutex_unlock(&mu);
			usleep(delay_us);
			pthread_mutex_lock(&mu);
		}
		switch (op->kind) {
		case RECORD:
			if (op->serial > op->event->completed)
				op->event->completed = op->serial;
			break;
		case WAIT:
			while (op->event->completed < op->serial)
				pthread_cond_wait(&changed, &mu);
			break;
		default:
			copy(s, op);
		}
		free(op);
		s->busy = 0;
		pthread_cond_broadcast(&changed);
	}
}

static struct stream *find_stream(handle h) {
	handle i = h - 0x5000000;
	if (i < (handle)nstreams && streams[i].live)
		return &streams[i];
	fault("a stream that is not there: %llx", (unsigned long long)h);
	return NULL;
}

static struct event *find_event(handle h) {
	handle i = h - 0xe000000;
	if (i < (handle)nevents && events[i].live)
		return &events[i];
	fault("an event that is not there: %llx", (unsigned long long)h);
	return NULL;
}

static struct memory *find_memory(handle p, size_t n) {
	int i;
	for (i = 0; i < nmemories; i++) {
		struct memory *m = &memories[i];
		if (m->live && p >= m->base && p + n <= m->base + m->size)
			return m;
	}
	fault("%zu bytes at %llx are no memory of the device", n, (unsigned long long)p);
	return NULL;
}

/* The driver's calls. */

int cuInit(unsigned flags) {
	ENTER; CHECK;
	if (flags)
		return leave(INVALID_VALUE);
	initialized = 1;
	return leave(0);
}

int cuDeviceGetCount(int *n) {
	ENTER; CHECK;
	*n = DEVICES;
	return leave(0);
}

int cuDeviceGet(int *device, int ordinal) {
	ENTER; CHECK;
	if (ordinal < 0 || ordinal >= DEVICES)
		return leave(INVALID_DEVICE);
	*device = ordinal;
	return leave(0);
}

int cuDeviceGetName(char *name, int len, int device) {
	ENTER; CHECK;
	snprintf(name, len, "Stub %d", device);
	return leave(0);
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
	ENTER; CHECK;
	*bytes = (size_t)(device + 1) << 30;
	return leave(0);
}

int cuDevicePrimaryCtxRetain(handle *ctx, int device) {
	ENTER; CHECK;
	contexts[device + 1].refs++;
	*ctx = 0xc000000 + device + 1;
	return leave(0);
}

int cuDevicePrimaryCtxRelease_v2(int device) {
	ENTER;
	int i, c = device + 1;
	if (contexts[c].refs == 0) {
		fault("a context was released that nobody holds");
		return leave(INVALID_CONTEXT);
	}
	if (--contexts[c].refs == 0) {
		for (i = 0; i < nmemories; i++)
			if (memories[i].live && memories[i].ctx == c)
				fault("the context of device %d ends with memory of %zu bytes", device, memories[i].size);
		for (i = 0; i < nranges; i++)
			if (ranges[i].live && ranges[i].ctx == c)
				fault("the context of device %d ends with %zu bytes pinned", device, (size_t)(ranges[i].hi - ranges[i].lo));
		for (i = 0; i < nevents; i++)
			if (events[i].live && events[i].ctx == c)
				fault("the context of device %d ends with an event", device);
		for (i = 0; i < nstreams; i++)
			if (streams[i].live && streams[i].ctx == c)
				fault("the context of device %d ends with a stream", device);
	}
	return leave(code);
}

int cuCtxSetCurrent(handle ctx) {
	ENTER; CHECK;
	if (ctx == 0) {
		current = 0;
		return leave(0);
	}
	if (ctx <= 0xc000000 || ctx > 0xc000000 + DEVICES || contexts[ctx - 0xc000000].refs == 0) {
		fault("a context that is not there: %llx", (unsigned long long)ctx);
		return leave(INVALID_CONTEXT);
	}
	current = ctx - 0xc000000;
	return leave(0);
}

int cuMemHostRegister_v2(unsigned char *p, size_t n, unsigned flags) {
	ENTER_IN_CONTEXT; CHECK;
	uintptr_t lo = (uintptr_t)p & ~(uintptr_t)(PAGE - 1), hi = ((uintptr_t)p + n + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	size_t sum = n;
	int i;
	if (n == 0 || flags != 1)
		return leave(INVALID_VALUE);
	for (i = 0; i < nranges; i++) {
		if (!ranges[i].live)
			continue;
		if (lo < ranges[i].hi && ranges[i].lo < hi) {
			fault("pages are pinned twice");
			return leave(ALREADY_REGISTERED);
		}
		sum += ranges[i].hi - ranges[i].lo;
	}
	if (pin_limit && sum > pin_limit)
		return leave(OUT_OF_MEMORY);
	ranges[nranges++] = (struct range){(uintptr_t)p, (uintptr_t)p + n, current, 1, 0};
	return leave(0);
}

int cuMemHostUnregister(unsigned char *p) {
	ENTER_IN_CONTEXT;
	int i;
	for (i = 0; i < nranges; i++) {
		struct range *r = &ranges[i];
		if (!r->live || r->lo != (uintptr_t)p)
			continue;
		if (r->pending)
			fault("memory is unpinned that %d copies use", r->pending);
		if (r->ctx != current)
			fault("memory is unpinned in another context than it was pinned");
		r->live = 0;
		return leave(code);
	}
	fault("memory is unpinned that was not pinned");
	return leave(NOT_REGISTERED);
}

int cuMemAlloc_v2(handle *p, size_t n) {
	static handle next = 0x200000000000;
	ENTER_IN_CONTEXT; CHECK;
	size_t sum = n;
	int i;
	if (n == 0)
		return leave(INVALID_VALUE);
	for (i = 0; i < nmemories; i++)
		if (memories[i].live)
			sum += memories[i].size;
	if (sum > (memory_limit ? memory_limit : (size_t)current << 30))
		return leave(OUT_OF_MEMORY);
	memories[nmemories++] = (struct memory){next, n, malloc(n), current, 1, 0};
	memset(memories[nmemories - 1].host, 0xA5, n);
	*p = next;
	next += (n + 0x1fffff) & ~(handle)0xfffff;
	return leave(0);
}

int cuMemFree_v2(handle p) {
	ENTER_IN_CONTEXT;
	int i;
	for (i = 0; i < nmemories; i++) {
		struct memory *m = &memories[i];
		if (!m->live || m->base != p)
			continue;
		if (m->pending)
			fault("memory of the device is freed that %d copies use", m->pending);
		m->live = 0;
		free(m->host);
		return leave(code);
	}
	fault("memory of the device is freed that is not there");
	return leave(INVALID_VALUE);
}

static int enqueue(enum kind kind, handle device, unsigned char *host, size_t n, handle stream) {
	struct stream *s = find_stream(stream);
	struct memory *m = find_memory(device, n);
	struct range *pinned = NULL;
	uintptr_t lo = (uintptr_t)host, hi = lo + n;
	int i;
	if (!s)
		return INVALID_HANDLE;
	if (!m || n == 0)
		return INVALID_VALUE;
	if (s->ctx != current || m->ctx != current) {
		fault("a copy between contexts");
		return INVALID_HANDLE;
	}
	for (i = 0; i < nranges; i++) {
		struct range *r = &ranges[i];
		if (!r->live || r->lo >= hi || lo >= r->hi)
			continue;
		if (r->lo > lo || r->hi < hi)
			return INVALID_VALUE; /* pinned in part */
		pinned = r;
		r->pending++;
	}
	m->pending++;
	push(s, (struct op){kind, host, m, device - m->base, n, pinned, NULL, 0, NULL});
	return 0;
}

int cuMemcpyHtoDAsync_v2(handle to, unsigned char *from, size_t n, handle stream) {
	ENTER_IN_CONTEXT; CHECK;
	return leave(enqueue(TO_DEVICE, to, from, n, stream));
}

int cuMemcpyDtoHAsync_v2(unsigned char *to, handle from, size_t n, handle stream) {
	ENTER_IN_CONTEXT; CHECK;
	return leave(enqueue(TO_HOST, from, to, n, stream));
}

int cuStreamCreate(handle *stream, unsigned flags) {
	ENTER_IN_CONTEXT; CHECK;
	struct stream *s = &streams[nstreams];
	if (flags > 1)
		return leave(INVALID_VALUE);
	*s = (struct stream){.ctx = current, .live = 1};
	*stream = 0x5000000 + nstreams++;
	pthread_create(&s->thread, NULL, run, s);
	return leave(0);
}

int cuStreamDestroy_v2(handle stream) {
	ENTER_IN_CONTEXT;
	struct stream *s = find_stream(stream);
	pthread_t thread;
	if (!s)
		return leave(INVALID_HANDLE);
	if (s->head || s->busy)
		fault("a stream is destroyed with work on it");
	push(s, (struct op){.kind = QUIT});
	s->live = 0;
	thread = s->thread;
	pthread_mutex_unlock(&mu);
	pthread_join(thread, NULL);
	pthread_mutex_lock(&mu);
	return leave(code);
}

int cuStreamSynchronize(handle stream) {
	ENTER_IN_CONTEXT;
	struct stream *s = find_stream(stream);
	if (!s)
		return leave(INVALID_HANDLE);
	while (s->head || s->busy)
		pthread_cond_wait(&changed, &mu);
	return leave(code ? code : s->failed ? LAUNCH_FAILED : 0);
}

int cuStreamWaitEvent(handle stream, handle event, unsigned flags) {
	ENTER_IN_CONTEXT; CHECK;
	struct stream *s = find_stream(stream);
	struct event *e = find_event(event);
	if (!s || !e)
		return leave(INVALID_HANDLE);
	if (flags)
		return leave(INVALID_VALUE);
	push(s, (struct op){.kind = WAIT, .event = e, .serial = e->recorded});
	return leave(0);
}

int cuEventCreate(handle *event, unsigned flags) {
	ENTER_IN_CONTEXT; CHECK;
	if (flags != 3)
		return leave(INVALID_VALUE);
	events[nevents] = (struct event){current, 1, 0, 0};
	*event = 0xe000000 + nevents++;
	return leave(0);
}

int cuEventDestroy_v2(handle event) {
	ENTER_IN_CONTEXT;
	struct event *e = find_event(event);
	if (!e)
		return leave(INVALID_HANDLE);
	e->live = 0;
	return leave(code);
}

int cuEventRecord(handle event, handle stream) {
	ENTER_IN_CONTEXT; CHECK;
	struct event *e = find_event(event);
	struct stream *s = find_stream(stream);
	if (!s || !e || s->ctx != e->ctx)
		return leave(INVALID_HANDLE);
	push(s, (struct op){.kind = RECORD, .event = e, .serial = ++e->recorded});
	return leave(0);
}

int cuEventSynchronize(handle event) {
	ENTER_IN_CONTEXT;
	struct event *e = find_event(event);
	long serial;
	if (!e)
		return leave(INVALID_HANDLE);
	for (serial = e->recorded; e->completed < serial;)
		pthread_cond_wait(&changed, &mu);
	return leave(code ? code : fail_copies ? LAUNCH_FAILED : 0);
}

static const struct { int code; const char *name, *text; } words[] = {
	{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

static int word(int code, const char **name, const char **text) {
	size_t i;
	for (i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (words[i].code == code) {
			*name = words[i].name;
			*text = words[i].text;
			return 0;
		}
	}
	*name = *text = NULL;
	return INVALID_VALUE;
}

int cuGetErrorName(int error, const char **text) {
	ENTER; CHECK;
	const char *other;
	return leave(word(error, text, &other));
}

int cuGetErrorString(int error, const char **text) {
	ENTER; CHECK;
	const char *other;
	return leave(word(error, &other, text));
}
