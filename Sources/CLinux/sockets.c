#include "clinux_sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

int clinux_epoll_create(void) {
    return epoll_create1(EPOLL_CLOEXEC);
}

int clinux_epoll_add(int epoll, int fd, uint32_t events, uint64_t token) {
    struct epoll_event event = {.events = events, .data.u64 = token};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

int clinux_epoll_remove(int epoll, int fd) {
    return epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
}

int clinux_epoll_wait(int epoll, clinux_event *events, int count, int timeout) {
    struct epoll_event raw[512];
    if (count > 512) count = 512;
    int found = epoll_wait(epoll, raw, count, timeout);
    for (int i = 0; i < found; i++) {
        events[i].token = raw[i].data.u64;
        events[i].events = raw[i].events;
    }
    return found;
}

int clinux_eventfd(void) {
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

// MARK: - Addresses

int clinux_resolve(const char *host, void *address) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(host, NULL, &hints, &found);
    if (error != 0) return error;
    memcpy(address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

// MARK: - Listening

static int close_keeping_errno(int fd) {
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

int clinux_listen_inet(const void *address, uint16_t port, int backlog, int reuse_port) {
    struct sockaddr_storage own = *(const struct sockaddr_storage *)address;
    struct sockaddr_in *four = (struct sockaddr_in *)&own;
    const struct in6_addr *six = own.ss_family == AF_INET6 ? &((struct sockaddr_in6 *)&own)->sin6_addr : NULL;
    // The port of an IPv6 address is in the same place.
    four->sin_port = htons(port);
    int fd = socket(own.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    const int on = 1, off = 0;
    int failed = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0;
    if (!failed && reuse_port) failed = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0;
    if (!failed) failed = setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0;
    if (!failed && six) {
        failed = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, IN6_IS_ADDR_UNSPECIFIED(six) ? &off : &on, sizeof on) != 0;
    }
    if (six ? IN6_IS_ADDR_LOOPBACK(six) : ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET) {
        // Loopback needs no congestion control: the pacing of BBR would only cost timers. Accepted connections inherit this.
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    }
    if (!failed) failed = bind(fd, (struct sockaddr *)&own, six ? sizeof(struct sockaddr_in6) : sizeof *four) != 0;
    if (!failed && backlog > 0) failed = listen(fd, backlog) != 0;
    return failed ? close_keeping_errno(fd) : fd;
}

static int unix_address(const char *path, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address->sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address->sun_path, path);
    return 0;
}

int64_t clinux_group(const char *group) {
    char *end;
    errno = 0;
    unsigned long number = strtoul(group, &end, 10);
    if (group[0] >= '0' && group[0] <= '9' && *end == 0) return errno == 0 && number < UINT32_MAX ? (int64_t)number : -1;
    struct group entry, *found = NULL;
    char buffer[16384];
    if (getgrnam_r(group, &entry, buffer, sizeof buffer, &found) != 0 || !found) return -1;
    return found->gr_gid;
}

int clinux_listen_unix(const char *path, int backlog, int mode, int64_t group) {
    struct sockaddr_un address;
    if (unix_address(path, &address) != 0) return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) return close_keeping_errno(fd);
    // Connections are refused until listen(2), so no client connects before the permissions are set.
    int failed = group >= 0 && chown(path, (uid_t)-1, (gid_t)group) != 0;
    if (!failed && mode >= 0) failed = chmod(path, (mode_t)mode) != 0;
    if (!failed) failed = listen(fd, backlog) != 0;
    if (failed) {
        int code = errno;
        unlink(path);
        errno = code;
        return close_keeping_errno(fd);
    }
    return fd;
}

int clinux_unix_is_alive(const char *path) {
    struct sockaddr_un address;
    if (unix_address(path, &address) != 0) return 1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return 1;
    // Any other failure, such as EACCES or EPROTOTYPE, comes from a socket that a process may still use.
    int alive = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno != ECONNREFUSED;
    close(fd);
    return alive;
}

int clinux_accept(int listener, void *peer) {
    socklen_t length = sizeof(struct sockaddr_storage);
    return accept4(listener, peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int clinux_local_address(int fd, void *address) {
    socklen_t length = sizeof(struct sockaddr_storage);
    return getsockname(fd, address, &length);
}

int clinux_is_listening(int fd) {
    int type = 0, listening = 0;
    socklen_t length = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) return 0;
    length = sizeof listening;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0 && listening;
}

int clinux_adopt(int fd) {
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return -1;
    const int on = 1;
    // Fails on a Unix socket, which does not need it.
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int clinux_refuse_handshakes(int listener) {
    enum { flags_offset = 13, syn = 0x02, ack = 0x10 };
    // The filter of a TCP socket sees packets from the TCP header on.
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, flags_offset),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, syn | ack),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, syn, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    return setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

/// A question to the kernel about TCP sockets.
typedef struct {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
} diag_query;

/// The first message of its answer.
typedef struct {
    struct nlmsghdr header;
    struct inet_diag_msg message;
    char attributes[1024];
} diag_answer;

/// Asks the kernel, and returns the type of the first message of its answer, or -1.
static int ask(const diag_query *query, diag_answer *answer) {
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (netlink < 0) return -1;
    // The kernel answers before send(2) returns.
    ssize_t count = send(netlink, query, sizeof *query, 0);
    if (count > 0) count = recv(netlink, answer, sizeof *answer, MSG_DONTWAIT);
    close(netlink);
    if (count < (ssize_t)sizeof answer->header) return -1;
    if (answer->header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return answer->header.nlmsg_type;
    return count < (ssize_t)(sizeof answer->header + sizeof answer->message) ? -1 : SOCK_DIAG_BY_FAMILY;
}

int clinux_has_handshakes(int listener) {
    struct sockaddr_storage own = {0};
    socklen_t length = sizeof own;
    if (getsockname(listener, (struct sockaddr *)&own, &length) != 0) return -1;
    if (own.ss_family != AF_INET && own.ss_family != AF_INET6) return 0;
    diag_query query = {
        .header = {
            .nlmsg_len = sizeof query, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .request = {.sdiag_family = (uint8_t)own.ss_family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = 1 << TCP_SYN_RECV},
    };
    query.request.id.idiag_sport =
        own.ss_family == AF_INET ? ((struct sockaddr_in *)&own)->sin_port : ((struct sockaddr_in6 *)&own)->sin6_port;
    diag_answer answer;
    switch (ask(&query, &answer)) {
    case SOCK_DIAG_BY_FAMILY: return 1;
    case NLMSG_DONE: return 0;
    default: return -1;
    }
}

// MARK: - Transfer

ssize_t clinux_send(int fd, const void *buffer, size_t count, int more) {
    return send(fd, buffer, count, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
}

ssize_t clinux_send_both(int fd, const void *first, size_t first_count, const void *second, size_t second_count, int more) {
    struct iovec parts[2] = {{(void *)first, first_count}, {(void *)second, second_count}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(fd, &message, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
}

void clinux_cork(int fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
}

int clinux_unacknowledged(int fd) {
    int bytes = 0;
    return ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : -1;
}

/// Asks the kernel for the socket whose local end is `peer` and whose remote end is `own`.
static int find_socket(const struct sockaddr_storage *peer, const struct sockaddr_storage *own, struct inet_diag_msg *found) {
    diag_query query = {
        .header = {.nlmsg_len = sizeof query, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .request = {.sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u},
    };
    struct inet_diag_sockid *id = &query.request.id;
    id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (peer->ss_family == AF_INET) {
        const struct sockaddr_in *source = (const void *)peer, *destination = (const void *)own;
        query.request.sdiag_family = AF_INET;
        id->idiag_sport = source->sin_port;
        id->idiag_dport = destination->sin_port;
        id->idiag_src[0] = source->sin_addr.s_addr;
        id->idiag_dst[0] = destination->sin_addr.s_addr;
    } else if (peer->ss_family == AF_INET6) {
        const struct sockaddr_in6 *source = (const void *)peer, *destination = (const void *)own;
        // The other end of a mapped connection is an IPv4 socket.
        int is_mapped = IN6_IS_ADDR_V4MAPPED(&source->sin6_addr);
        query.request.sdiag_family = is_mapped ? AF_INET : AF_INET6;
        id->idiag_sport = source->sin6_port;
        id->idiag_dport = destination->sin6_port;
        memcpy(id->idiag_src, &source->sin6_addr.s6_addr[is_mapped ? 12 : 0], is_mapped ? 4 : 16);
        memcpy(id->idiag_dst, &destination->sin6_addr.s6_addr[is_mapped ? 12 : 0], is_mapped ? 4 : 16);
    } else {
        return -1;
    }
    diag_answer answer;
    if (ask(&query, &answer) != SOCK_DIAG_BY_FAMILY) return -1;
    *found = answer.message;
    return 0;
}

int clinux_peer_is_closed(int fd) {
    struct sockaddr_storage peer = {0}, own = {0};
    socklen_t peer_length = sizeof peer, own_length = sizeof own;
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_length) != 0) return -1;
    if (getsockname(fd, (struct sockaddr *)&own, &own_length) != 0) return -1;
    // A Unix socket that is closed reports EPOLLHUP.
    if (peer.ss_family == AF_UNIX) return 0;
    struct inet_diag_msg found;
    if (find_socket(&peer, &own, &found) != 0) return -1;
    return found.idiag_inode == 0;
}

int clinux_reset_on_close(int fd) {
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    return setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

int clinux_send_datagram(const char *name, const char *text) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    if (length == 0 || length >= sizeof address.sun_path) {
        errno = EINVAL;
        return -1;
    }
    memcpy(address.sun_path, name, length);
    if (name[0] == '@') address.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    ssize_t sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address, size);
    if (sent < 0) return close_keeping_errno(fd);
    close(fd);
    return 0;
}
