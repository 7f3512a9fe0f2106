/* Makes the one system call that its first argument names, and says whether it worked. Used by the sandbox
 * tests: inside the sandbox nearly every line must read "refused". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int say(const char *what, long result) {
    int error = errno;
    if (result >= 0) {
        printf("SUCCEEDED %s\n", what);
        return 0;
    }
    printf("refused %s: %s\n", what, strerror(error));
    return 1;
}

static int is(const char *what, const char *name) { return strcmp(what, name) == 0; }

static int connect_unix(const char *what, const char *name, int abstract) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    if (length > sizeof address.sun_path - 2) return say(what, -1);
    memcpy(address.sun_path + (abstract ? 1 : 0), name, length);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0) return say(what, -1);
    return say(what, connect(fd, (struct sockaddr *)&address,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (abstract ? 1 : 0))));
}

/* Writes a byte to a file fifty times a second, for a minute. */
static void *heart(void *name) {
    int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
    for (int beat = 0; fd >= 0 && beat < 3000 && write(fd, ".", 1) == 1; beat++) usleep(20000);
    _exit(0);
}

int main(int count, char **words) {
    if (count < 2) return 2;
    const char *what = words[1];
    const char *first = count > 2 ? words[2] : "";
    const char *second = count > 3 ? words[3] : "0";
    int pid = atoi(first);
    setvbuf(stdout, NULL, _IONBF, 0);

    if (is(what, "remount")) return say(what, mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
    if (is(what, "umount")) return say(what, umount2(first, MNT_DETACH));
    if (is(what, "mount")) return say(what, mount("none", "/tmp", "tmpfs", 0, NULL));
    if (is(what, "opentree")) return say(what, syscall(428, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */));
    if (is(what, "fsopen")) return say(what, syscall(430, "tmpfs", 0));
    if (is(what, "chroot")) return say(what, chroot("/tmp"));
    if (is(what, "suidchmod")) return say(what, chmod(first, 04755));
    if (is(what, "suidfchmodat2")) return say(what, syscall(452, AT_FDCWD, first, 04755, 0));
    if (is(what, "suidopen")) {
        int fd = open(first, O_CREAT | O_WRONLY | O_EXCL, 06755);
        struct stat status;
        if (fd >= 0 && fstat(fd, &status) == 0 && !(status.st_mode & 06000)) { errno = EPERM; fd = -1; }
        return say(what, fd);
    }
    if (is(what, "suidopenat2")) {
        uint64_t how[3] = {O_CREAT | O_WRONLY | O_EXCL, 06755, 0};
        return say(what, syscall(437, AT_FDCWD, first, how, sizeof how));
    }
    if (is(what, "mknod")) return say(what, mknod(first, S_IFCHR | 0666, makedev(1, 3)));
    if (is(what, "mknodblk")) return say(what, mknod(first, S_IFBLK | 0666, makedev(254, 0)));
    if (is(what, "fdwrite")) {
        int fd = openat(pid, second, O_CREAT | O_WRONLY, 0644);
        return say(what, fd);
    }
    if (is(what, "tcp") || is(what, "udp")) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(second))};
        inet_pton(AF_INET, first, &address.sin_addr);
        int fd = socket(AF_INET, is(what, "tcp") ? SOCK_STREAM : SOCK_DGRAM, 0);
        struct timeval patience = {.tv_sec = 2};
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (is(what, "udp")) {
            /* Whether it arrived is for the other side to say. */
            printf("sent %ld\n", (long)sendto(fd, "x", 1, 0, (struct sockaddr *)&address, sizeof address));
            return 1;
        }
        return say(what, connect(fd, (struct sockaddr *)&address, sizeof address));
    }
    if (is(what, "abstract")) return connect_unix(what, first, 1);
    if (is(what, "unix")) return connect_unix(what, first, 0);
    if (is(what, "sock")) return say(what, socket(pid, atoi(second), count > 4 ? atoi(words[4]) : 0));
    if (is(what, "icmp")) return say(what, socket(AF_INET, SOCK_DGRAM, 1) < 0 && socket(AF_INET, SOCK_RAW, 1) < 0 ? -1 : 0);
    if (is(what, "tiocsti")) return say(what, ioctl(0, TIOCSTI, "x"));
    if (is(what, "tiocsti64")) return say(what, syscall(SYS_ioctl, 0, TIOCSTI | (1UL << 32), "x"));
    if (is(what, "iouring")) {
        char parameters[120] = {0};
        return say(what, syscall(425, 8, parameters));
    }
    if (is(what, "keyctl")) return say(what, syscall(SYS_keyctl, 0, -3, 1));
    if (is(what, "addkey")) return say(what, syscall(SYS_add_key, "user", "cmdgate", "x", 1, -2));
    if (is(what, "bpf")) {
        uint32_t attributes[18] = {2 /* array */, 4, 8, 1};
        return say(what, syscall(SYS_bpf, 0, attributes, sizeof attributes));
    }
    if (is(what, "perf")) {
        uint64_t attributes[16] = {1 /* software */ | ((uint64_t)sizeof attributes << 32), 0};
        return say(what, syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0));
    }
    if (is(what, "userfaultfd")) return say(what, syscall(SYS_userfaultfd, O_CLOEXEC | 1));
    if (is(what, "unshare")) return say(what, unshare(CLONE_NEWUSER));
    if (is(what, "clonens") || is(what, "clone3ns")) {
        uint64_t arguments[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
        long child = is(what, "clonens") ? syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)
                                         : syscall(435, arguments, sizeof arguments);
        if (child == 0) _exit(0);
        return say(what, child);
    }
    if (is(what, "handle")) {
        struct { struct file_handle head; char rest[128]; } handle = {.head = {.handle_bytes = 128}};
        int mount_id, fd = open("/", O_RDONLY);
        if (name_to_handle_at(AT_FDCWD, "/", &handle.head, &mount_id, 0) < 0) {
            handle.head.handle_bytes = 8;
            handle.head.handle_type = 1;
        }
        return say(what, open_by_handle_at(fd, &handle.head, O_RDONLY));
    }
#if defined(__x86_64__)
    if (is(what, "int80")) {
        long result;
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
        errno = (int)-result;
        return say(what, result > 0 ? 0 : -1);
    }
    if (is(what, "x32")) return say(what, syscall(0x40000000L + 39));
    if (is(what, "x32mount")) return say(what, syscall(0x40000000L + 165, "none", "/tmp", "tmpfs", 0, 0));
#endif
    if (is(what, "sethostname")) {
        char name[128] = {0};
        gethostname(name, sizeof name - 1);
        return say(what, sethostname(name, strlen(name)));
    }
    if (is(what, "settime")) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        return say(what, clock_settime(CLOCK_REALTIME, &now));
    }
    if (is(what, "syslog")) {
        char text[512];
        return say(what, syscall(SYS_syslog, 3, text, sizeof text));
    }
    /* Only switches what Ctrl-Alt-Del does. */
    if (is(what, "reboot")) return say(what, syscall(SYS_reboot, 0xfee1dead, 0x28121969, 0, NULL));
    if (is(what, "nice")) return say(what, setpriority(PRIO_PROCESS, 0, -5));
    if (is(what, "setns")) {
        int fd = open(first, O_RDONLY);
        return say(what, fd < 0 ? -1 : syscall(SYS_setns, fd, 0));
    }
    if (is(what, "ptrace")) {
        long result = ptrace(PTRACE_ATTACH, pid, 0, 0);
        if (result == 0) { waitpid(pid, NULL, 0); ptrace(PTRACE_DETACH, pid, 0, 0); }
        return say(what, result);
    }
    if (is(what, "holdpid1")) {
        /* Stops the sandbox's first process for good. */
        long result = ptrace(PTRACE_ATTACH, 1, 0, 0);
        say(what, result);
        pause();
    }
    if (is(what, "vmread")) {
        char byte;
        struct iovec here = {&byte, 1}, there = {&byte, 1};
        return say(what, process_vm_readv(pid, &here, 1, &there, 1, 0));
    }
    if (is(what, "pidfdgetfd")) {
        long fd = syscall(434, pid, 0);
        return say(what, fd < 0 ? -1 : syscall(438, fd, 1, 0));
    }
    if (is(what, "kill")) return say(what, kill(pid, 0));
    if (is(what, "ptraceself")) {
        pid_t child = fork();
        if (child == 0) {
            ptrace(PTRACE_TRACEME, 0, 0, 0);
            raise(SIGSTOP);
            _exit(7);
        }
        int status;
        waitpid(child, &status, 0);
        if (!WIFSTOPPED(status) || ptrace(PTRACE_CONT, child, 0, 0) < 0) return 1;
        waitpid(child, &status, 0);
        printf("own-child-traced %d\n", WEXITSTATUS(status));
        return 0;
    }
    if (is(what, "memfd")) {
        int fd = memfd_create("x", 0);
        const char script[] = "#!/bin/sh\necho memfd-ran; touch \"$OUT/memfd\"\n";
        if (fd < 0 || write(fd, script, sizeof script - 1) < 0) return 1;
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        char *arguments[] = {path, NULL};
        execv(path, arguments);
        return 1;
    }
    if (is(what, "headless")) {
        /* Goes on in a thread when the first one has ended; /proc then calls the process a zombie. */
        pthread_t thread;
        if (pthread_create(&thread, NULL, heart, (void *)(uintptr_t)first) != 0) return 1;
        pthread_exit(NULL);
    }
    if (is(what, "shmcreate")) return say(what, shmget((key_t)atoi(first), 4096, IPC_CREAT | 0666));
    if (is(what, "shmget")) return say(what, shmget((key_t)atoi(first), 0, 0));
    if (is(what, "shmremove")) return say(what, shmctl(shmget((key_t)atoi(first), 0, 0), IPC_RMID, NULL));
    if (is(what, "setuid")) {
        if (pid == (int)getuid()) { printf("refused setuid: already\n"); return 1; }
        return say(what, setuid((uid_t)pid));
    }
    fprintf(stderr, "unknown call %s\n", what);
    return 2;
}
