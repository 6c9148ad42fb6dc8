/* See peer_lines.h. After peer_lines_close, the memory lives until libuv has closed
 * the pipe. */
#include "daemon/common/peer_lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/frame.h"

#define READ_SIZE 4096

struct peer_lines {
    uv_pipe_t pipe;
    peer_line_fn on_line;
    void *arg;
    struct frame in;
    bool closed;
};

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct peer_lines *p = handle->data;
    char *room = frame_room(&p->in, READ_SIZE);
    *out = uv_buf_init(room, room ? READ_SIZE : 0);
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
    (void)b;
    struct peer_lines *p = stream->data;
    size_t at = 0, len = 0;
    const char *line;
    if (n < 0) {
        p->on_line(p->arg, NULL, 0);
        return;
    }
    frame_filled(&p->in, (size_t)n);
    while (!p->closed && (line = frame_next(&p->in, &at, &len)))
        p->on_line(p->arg, line, len);
    frame_done(&p->in, at);
}

static void
on_closed(uv_handle_t *handle)
{
    struct peer_lines *p = handle->data;
    frame_free(&p->in);
    free(p);
}

struct peer_lines *
peer_lines_open(uv_loop_t *loop, int fd, peer_line_fn on_line, void *arg, struct err *e)
{
    struct peer_lines *p = xcalloc(1, sizeof *p);
    p->on_line = on_line;
    p->arg = arg;
    frame_init(&p->in, FRAME_MAX_PEER);
    uv_pipe_init(loop, &p->pipe, 0);
    p->pipe.data = p;
    int rc = uv_pipe_open(&p->pipe, fd);
    if (rc) {
        close(fd);
        peer_lines_close(p);
        err_set(e, ERR_FAILED, "cannot read from a process: %s", uv_strerror(rc));
        return NULL;
    }
    uv_read_start((uv_stream_t *)&p->pipe, on_alloc, on_read);
    return p;
}

void
peer_lines_close(struct peer_lines *p)
{
    if (!p)
        return;
    p->closed = true;
    uv_close((uv_handle_t *)&p->pipe, on_closed);
}

int
peer_lines_say(struct peer_lines *p, const char *text, size_t n)
{
    uv_buf_t b = uv_buf_init((char *)(uintptr_t)text, (unsigned)n);
    return uv_try_write((uv_stream_t *)&p->pipe, &b, 1);
}

int
peer_lines_fd(const struct peer_lines *p)
{
    uv_os_fd_t fd;
    return uv_fileno((const uv_handle_t *)&p->pipe, &fd) == 0 ? fd : -1;
}
