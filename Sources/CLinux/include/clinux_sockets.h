#ifndef GIFREEL_CLINUX_SOCKETS_H
#define GIFREEL_CLINUX_SOCKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

/// One readiness report of epoll.
typedef struct {
    uint64_t token;
    uint32_t events;
} clinux_event;

static const uint32_t clinux_event_in = EPOLLIN;
static const uint32_t clinux_event_out = EPOLLOUT;
static const uint32_t clinux_event_hangup_read = EPOLLRDHUP;
static const uint32_t clinux_event_hangup = EPOLLHUP;
static const uint32_t clinux_event_error = EPOLLERR;
static const uint32_t clinux_event_edge = (uint32_t)EPOLLET;
static const uint32_t clinux_event_exclusive = (uint32_t)EPOLLEXCLUSIVE;

/// epoll_create1(2) with EPOLL_CLOEXEC. Returns a descriptor, or -1 with errno.
int clinux_epoll_create(void);
/// epoll_ctl(2) EPOLL_CTL_ADD. Returns 0, or -1 with errno.
int clinux_epoll_add(int epoll, int fd, uint32_t events, uint64_t token);
/// epoll_ctl(2) EPOLL_CTL_DEL. Returns 0, or -1 with errno.
int clinux_epoll_remove(int epoll, int fd);
/// epoll_wait(2) for up to `count` reports (512 at most) and up to `timeout` milliseconds (-1: no limit).
int clinux_epoll_wait(int epoll, clinux_event *events, int count, int timeout);

/// eventfd(2), non-blocking and closed on exec. Returns a descriptor, or -1 with errno.
int clinux_eventfd(void);

// An address is a `struct sockaddr_storage`. Its header is not included, because Swift would then find the constants of sockets in
// this module only.

/// A listening, non-blocking TCP socket with SO_REUSEADDR and TCP_NODELAY (which accepted sockets inherit) at the address, with
/// another port.
/// `reuse_port` sets SO_REUSEPORT; a `backlog` of 0 binds without listening. An IPv6 socket with the unspecified address also
/// accepts IPv4.
/// Returns a descriptor, or -1 with errno.
int clinux_listen_inet(const void *address, uint16_t port, int backlog, int reuse_port);
/// A listening, non-blocking Unix stream socket at `path`. It gets the permission bits `mode` and the group `group` before a
/// client can connect; -1 leaves either as bind(2) sets it. Returns a descriptor, or -1 with errno.
int clinux_listen_unix(const char *path, int backlog, int mode, int64_t group);
/// The id of a group, given by name or number; -1 if there is none.
int64_t clinux_group(const char *group);
/// Nonzero if a server accepts connections on the Unix socket at `path`.
int clinux_unix_is_alive(const char *path);
/// accept4(2), non-blocking and closed on exec; `peer` receives the other end. Returns a descriptor, or -1 with errno.
int clinux_accept(int listener, void *peer);
/// The local end of a socket. Returns 0, or -1 with errno.
int clinux_local_address(int fd, void *address);
/// Nonzero if `fd` is a listening stream socket.
int clinux_is_listening(int fd);
/// Makes `fd` non-blocking and closed on exec. Returns 0, or -1 with errno.
int clinux_adopt(int fd);
/// Makes a listening TCP socket discard the first packet of new handshakes (SO_ATTACH_FILTER); those that have begun proceed. The
/// filter acts on the socket itself, so on all processes that hold it. Returns 0, or -1 with errno.
int clinux_refuse_handshakes(int listener);
/// Whether handshakes with the local port of a TCP socket have begun and are not complete (sock_diag(7)). Returns 1 or 0, or -1 if
/// the kernel does not report it.
int clinux_has_handshakes(int listener);

/// send(2) with MSG_NOSIGNAL, and MSG_MORE if `more` is nonzero. Returns a count, or -1 with errno.
ssize_t clinux_send(int fd, const void *buffer, size_t count, int more);
/// The same for two buffers, one after the other (sendmsg(2)).
ssize_t clinux_send_both(int fd, const void *first, size_t first_count, const void *second, size_t second_count, int more);
/// Delays partial packets until the connection is closed or shut down (TCP_CORK). No effect on a Unix socket.
void clinux_cork(int fd);
/// The bytes that were sent and not yet acknowledged by the peer (SIOCOUTQ), or -1 with errno.
int clinux_unacknowledged(int fd);
/// Whether the process at the other end of a TCP connection has closed its socket (sock_diag(7)), for connections whose peer has
/// sent a FIN, which both close(2) and shutdown(2) do. Returns 1 if no process holds the peer's socket, 0 if one does, or -1 if the
/// peer is not on this machine or not in this network namespace.
int clinux_peer_is_closed(int fd);
/// Makes close(2) reset the connection instead of ending it in order.
int clinux_reset_on_close(int fd);

/// The first address of a host name or number (getaddrinfo(3)). The port is set to 0.
/// Returns 0, or the resolver's error number.
int clinux_resolve(const char *host, void *address);
/// Sends `text` as one datagram to a Unix socket. A name that begins with '@' is abstract. Returns 0, or -1 with errno.
int clinux_send_datagram(const char *name, const char *text);

#endif
