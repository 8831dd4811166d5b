/* Records of a batch v2: the fast twin of records.py, which has the rules and the byte table.
 *
 * Both return the same values for the same bytes, errors included; tests hold them to it. No I/O, no state,
 * no Python object per record. A position is checked before a byte is read, and a length against the bytes
 * that remain before it is used: no sum of a position and a length is formed until it is known to fit.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define INTERFACE 1
#define HEADER_BYTES 61
#define SMALLEST_LENGTH (HEADER_BYTES - 12)

enum {
    OK, TRUNCATED, BAD_VARINT, BAD_LENGTH, BAD_OFFSET_DELTA, BAD_KEY_LENGTH, BAD_VALUE_LENGTH,
    BAD_HEADER_COUNT, BAD_HEADER_KEY_LENGTH, BAD_HEADER_VALUE_LENGTH, TRAILING_BYTES
};

typedef struct {
    const uint8_t *data;
    Py_ssize_t at;
    Py_ssize_t bad; /* where the field begins that is wrong */
} Cursor;

typedef struct {
    int64_t timestamp;
    int32_t offset;
    int32_t key_length, value_length, header_count;
    Py_ssize_t key_at, value_at, headers_at;
} Fields;

/* Zigzag varint of at most 5 bytes and 32 bits (10 and 64) before `end`. */
static inline int read_varint(Cursor *c, Py_ssize_t end, int most, uint64_t *out)
{
    uint64_t result = 0;
    Py_ssize_t at = c->at;
    int index;
    if (at < end && c->data[at] < 0x80) {
        *out = c->data[at];
        c->at = at + 1;
        return OK;
    }
    for (index = 0; index < most; index++) {
        uint8_t byte;
        if (end - at <= index) {
            c->bad = at;
            return TRUNCATED;
        }
        byte = c->data[at + index];
        /* The last byte of ten has room for one bit, the last of five for four. */
        if (index == most - 1 && byte > (most == 10 ? 0x01 : 0x0F))
            break;
        result |= (uint64_t)(byte & 0x7F) << (7 * index);
        if (byte < 0x80) {
            *out = result;
            c->at = at + index + 1;
            return OK;
        }
    }
    c->bad = at;
    return BAD_VARINT;
}

static inline int read_int32(Cursor *c, Py_ssize_t end, int32_t *out)
{
    uint64_t raw;
    int kind = read_varint(c, end, 5, &raw);
    if (kind == OK)
        *out = (int32_t)((uint32_t)(raw >> 1) ^ (uint32_t)(0 - (raw & 1)));
    return kind;
}

static inline int read_int64(Cursor *c, Py_ssize_t end, int64_t *out)
{
    uint64_t raw;
    int kind = read_varint(c, end, 10, &raw);
    if (kind == OK)
        *out = (int64_t)((raw >> 1) ^ (0 - (raw & 1)));
    return kind;
}

/* A length of `least` or more, and as many bytes. */
static inline int skip(Cursor *c, Py_ssize_t end, int wrong, int32_t least, int32_t *length, Py_ssize_t *begin)
{
    Py_ssize_t at = c->at;
    int kind = read_int32(c, end, length);
    if (kind != OK)
        return kind;
    if (*length < least || *length > end - c->at) {
        c->bad = at;
        return wrong;
    }
    *begin = c->at;
    if (*length > 0)
        c->at += *length;
    return OK;
}

static int skip_headers(Cursor *c, Py_ssize_t end, Fields *f)
{
    Py_ssize_t at = c->at, begin;
    int32_t index, length;
    int kind = read_int32(c, end, &f->header_count);
    if (kind != OK)
        return kind;
    /* A header is two bytes at least: an absurd count must not become an absurd loop. */
    if (f->header_count < 0 || f->header_count > (end - c->at) / 2) {
        c->bad = at;
        return BAD_HEADER_COUNT;
    }
    f->headers_at = c->at;
    for (index = 0; index < f->header_count; index++) {
        if ((kind = skip(c, end, BAD_HEADER_KEY_LENGTH, 0, &length, &begin)) != OK)
            return kind;
        if ((kind = skip(c, end, BAD_HEADER_VALUE_LENGTH, -1, &length, &begin)) != OK)
            return kind;
    }
    return OK;
}

/* Every rule, one record. expected < 0: any offset delta from 0. */
static inline int read_record(Cursor *c, Py_ssize_t limit, int64_t expected, Fields *f)
{
    Py_ssize_t start = c->at, end, place;
    int32_t length;
    int kind = read_int32(c, limit, &length);
    if (kind != OK)
        return kind;
    c->bad = start;
    if (length < 0)
        return BAD_LENGTH;
    if (length > limit - c->at)
        return TRUNCATED;
    if (length == 0)
        return BAD_LENGTH;
    end = c->at + length;
    c->at += 1; /* attributes: unused */
    if ((kind = read_int64(c, end, &f->timestamp)) != OK)
        return kind;
    place = c->at;
    if ((kind = read_int32(c, end, &f->offset)) != OK)
        return kind;
    if (f->offset < 0 || (expected >= 0 && f->offset != expected)) {
        c->bad = place;
        return BAD_OFFSET_DELTA;
    }
    if ((kind = skip(c, end, BAD_KEY_LENGTH, -1, &f->key_length, &f->key_at)) != OK)
        return kind;
    if ((kind = skip(c, end, BAD_VALUE_LENGTH, -1, &f->value_length, &f->value_at)) != OK)
        return kind;
    if ((kind = skip_headers(c, end, f)) != OK)
        return kind;
    if (c->at != end) {
        c->bad = start;
        return BAD_LENGTH;
    }
    return OK;
}

/* The buffer as bytes and a position inside it; -1 with an exception set. */
static int open_buffer(PyObject *object, Py_ssize_t position, Py_buffer *view)
{
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0)
        return -1;
    if (position < 0 || position > view->len) {
        PyBuffer_Release(view);
        PyErr_SetString(PyExc_ValueError, "the position is outside the buffer");
        return -1;
    }
    return 0;
}

static PyObject *walk(PyObject *module, PyObject *args)
{
    PyObject *object;
    Py_ssize_t position, index = 0;
    long long count, keyless = -1, greatest = 0, greatest_at = -1, least = 0;
    int consecutive, kind = OK;
    Py_buffer view;
    Cursor c;
    Fields f;

    if (!PyArg_ParseTuple(args, "OnLp", &object, &position, &count, &consecutive))
        return NULL;
    if (open_buffer(object, position, &view) < 0)
        return NULL;
    c.data = view.buf;
    c.at = position;
    c.bad = position;
    for (index = 0; index < count; index++) {
        kind = read_record(&c, view.len, consecutive ? (int64_t)index : -1, &f);
        if (kind != OK)
            break;
        if (f.key_length < 0 && keyless < 0)
            keyless = index;
        if (index == 0 || f.timestamp > greatest) {
            greatest = f.timestamp;
            greatest_at = f.offset;
        }
        if (index == 0 || f.timestamp < least)
            least = f.timestamp;
    }
    if (kind == OK && c.at != view.len) {
        kind = TRAILING_BYTES;
        c.bad = c.at;
    }
    PyBuffer_Release(&view);
    if (kind != OK)
        return Py_BuildValue("(innLLLL)", kind, index, c.bad, 0LL, -1LL, 0LL, -1LL);
    return Py_BuildValue("(innLLLL)", OK, index, c.at, greatest, greatest_at, least, keyless);
}

static PyObject *malformed(int kind, Py_ssize_t position)
{
    PyObject *twin = PyImport_ImportModule("headwater.wire.records"), *error = NULL;
    if (twin == NULL)
        return NULL;
    error = PyObject_CallMethod(twin, "malformed", "in", kind, position);
    Py_DECREF(twin);
    if (error != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

static PyObject *first_at_or_after(PyObject *module, PyObject *args)
{
    PyObject *object;
    Py_ssize_t position;
    long long count, index, delta;
    int kind = OK, found = 0;
    Py_buffer view;
    Cursor c;
    Fields f;

    if (!PyArg_ParseTuple(args, "OnLL", &object, &position, &count, &delta))
        return NULL;
    if (open_buffer(object, position, &view) < 0)
        return NULL;
    c.data = view.buf;
    c.at = position;
    c.bad = position;
    for (index = 0; index < count && !found; index++) {
        kind = read_record(&c, view.len, -1, &f);
        if (kind != OK)
            break;
        found = f.timestamp >= delta;
    }
    PyBuffer_Release(&view);
    if (kind != OK)
        return malformed(kind, c.bad);
    if (!found)
        Py_RETURN_NONE;
    return Py_BuildValue("(Li)", (long long)f.timestamp, (int)f.offset);
}

static uint64_t big_endian(const uint8_t *data, int bytes)
{
    uint64_t result = 0;
    while (bytes-- > 0)
        result = result << 8 | *data++;
    return result;
}

/* The end of the whole batch at `position`, or -1 if there is none. */
static Py_ssize_t batch_end(const Py_buffer *view, Py_ssize_t position, int64_t *base)
{
    const uint8_t *batch = (const uint8_t *)view->buf + position;
    int32_t length;
    if (view->len - position < HEADER_BYTES)
        return -1;
    length = (int32_t)big_endian(batch + 8, 4);
    *base = (int64_t)big_endian(batch, 8);
    if (length < SMALLEST_LENGTH || length > view->len - position - 12 || batch[16] != 2)
        return -1;
    return position + 12 + length;
}

static PyObject *scan_batches(PyObject *module, PyObject *args)
{
    PyObject *object;
    Py_ssize_t position = 0, end;
    long long limit_offset;
    int64_t base;
    Py_buffer view;

    if (!PyArg_ParseTuple(args, "OL|n", &object, &limit_offset, &position))
        return NULL;
    if (open_buffer(object, position, &view) < 0)
        return NULL;
    while ((end = batch_end(&view, position, &base)) >= 0 && base < limit_offset)
        position = end;
    PyBuffer_Release(&view);
    return PyLong_FromSsize_t(position);
}

static PyMethodDef methods[] = {
    {"walk", walk, METH_VARARGS, "walk(buffer, position, count, consecutive): see records.py"},
    {"first_at_or_after", first_at_or_after, METH_VARARGS, "first_at_or_after(buffer, position, count, delta)"},
    {"scan_batches", scan_batches, METH_VARARGS, "scan_batches(buffer, limit_offset, position=0)"},
    {NULL, NULL, 0, NULL},
};

static int set_up(PyObject *module)
{
    return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, set_up}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_records", "The C twin of headwater.wire.records.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__records(void)
{
    return PyModuleDef_Init(&definition);
}
