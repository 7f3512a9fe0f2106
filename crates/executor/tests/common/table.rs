//! The rows that are tried through the library and through the program alike.
//!
//! `$SC` makes the system call that it is told, `$OUT` lies outside the project; the other variables are those of
//! [`super::Fixture::variables`].

use cmdgate_executor::Mode;

/// A name, and a command that may do what it likes and must do no harm.
pub(crate) type Denied = (&'static str, &'static str);
/// A name, a mode, a command that must end with 0 there, and what its output must hold.
pub(crate) type Works = (&'static str, Mode, &'static str, &'static [&'static str]);

/// Ways to write outside the project.
pub(crate) const ESCAPES: &[Denied] = &[
    ("f01_absolute_paths", "touch $OUT/abs; echo x >> /etc/sbx_test; touch $HOME/sbx_test; touch /sbx_test"),
    ("f02_symlink", "ln -s $OUT lnk && touch lnk/sym; echo x > lnk/victim"),
    ("f03_new_hard_link", "ln $OUT/victim hard && echo pwn > hard"),
    ("f05_own_root", "touch /proc/self/root$OUT/psr; touch /proc/1/root$OUT/p1r; touch /proc/1/cwd/../p1c"),
    ("f06_every_root", "for p in /proc/[0-9]*; do touch $p/root$OUT/pall; touch $p/cwd/../pcwd; done"),
    ("f07_dot_dot", "touch ../outside/dd; touch ../../../../../../../../..$OUT/dd"),
    (
        "f08_remount",
        "mount -o remount,rw,bind / && touch $OUT/rm; mount --bind $OUT f; $SC remount; $SC mount",
    ),
    (
        "f09_new_user_namespace",
        "unshare -Urm sh -c 'mount -o remount,rw,bind / ; touch $OUT/ur; umount -l / ; touch $OUT/ur'",
    ),
    (
        "f10_umount_a_mask",
        "umount -l .git/hooks; $SC umount $PWD/.git/hooks; $SC umount $HOME/.ssh; cat $HOME/.ssh/id_test; \
         echo x > .git/hooks/pre-commit",
    ),
    (
        "f11_set_id_bits",
        "chmod 4755 f; cp /bin/true s && chmod u+s s; chmod g+s s; $SC suidchmod s; $SC suidfchmodat2 s",
    ),
    ("f12_created_with_set_id", "$SC suidopen so; $SC suidopenat2 so2"),
    ("f13_device_nodes", "$SC mknod n; $SC mknodblk b; mknod c c 1 5 && head -c1 c"),
    (
        "f14_capabilities_on_files",
        "setcap cap_sys_admin+ep f && echo SUCCEEDED; setfattr -n trusted.x -v 1 f && echo SUCCEEDED; \
         python3 -c 'import os; os.setxattr(\"f\", \"security.capability\", \
         bytes.fromhex(\"0100000200200000000000000000000000000000\")); print(\"SUCCEEDED\")'",
    ),
    ("f15_replacing_the_project", "mv $PWD $PWD.old; rmdir $PWD; cd ..; mv $WS x; ln -s / $WS; mv outside x"),
    (
        "f19_kernel_settings",
        "echo x > /proc/sys/kernel/core_pattern; echo h > /proc/sysrq-trigger; echo x > /proc/sys/kernel/hostname; \
         sysctl -w kernel.core_pattern=x",
    ),
    (
        "f20_sysfs_and_control_groups",
        "echo 1 > /sys/kernel/mm/transparent_hugepage/khugepaged/defrag && echo SUCCEEDED; \
         find /sys/fs/cgroup -name cgroup.procs -maxdepth 3 2>/dev/null | while read p; do echo $$ > $p && echo SUCCEEDED; \
         done; mkdir /sys/fs/cgroup/sbx /sys/fs/cgroup/memory/sbx && echo SUCCEEDED",
    ),
    (
        "f21_leaked_descriptor",
        "$SC fdwrite $LEAKED leak; echo y > /proc/self/fd/$LEAKED/leakb; for d in /proc/self/fd/*; do touch $d/leakc; \
         done; ls -l /proc/self/fd",
    ),
    (
        "f22_directory_swapped_for_a_symlink",
        "mkdir d; ln -sfn $OUT d; touch d/toctou; rm -rf d; ln -sfn $OUT d; touch d/toctou",
    ),
];

/// Ways to change what is protected inside it.
pub(crate) const PROTECTED: &[Denied] = &[
    (
        "p01_hooks",
        "echo x > .git/hooks/pre-commit; mkdir -p .git/hooks/x; rm -rf .git/hooks; mv .git/hooks h",
    ),
    (
        "p02_config",
        "git config core.fsmonitor /tmp/x; echo '[core]fsmonitor=/x' >> .git/config; printf x > .git/c && mv .git/c \
         .git/config; rm .git/config; ln -sf /tmp/x .git/config",
    ),
    (
        "p03_moving_git_away",
        "mv .git .git2 && mkdir -p .git && cp -r .git2/* .git/ && echo x > .git/hooks/pre-commit",
    ),
    (
        "p05_existing_editor_settings",
        "echo x > .vscode/tasks.json; rm -rf .vscode; mv .vscode v2; echo x > .vscode/settings.json; echo K=2 > .env; \
         rm .env; mv .env e; sed -i s/1/2/ .env",
    ),
];

/// Ways to read secrets.
pub(crate) const SECRETS: &[Denied] = &[
    (
        "r01_files_with_secrets",
        "cat ~/.ssh/id_test; ls -A ~/.ssh; cat /etc/shadow && echo SUCCEEDED; cat ~/.npmrc ~/.netrc \
         ~/.config/gh/hosts.yml; cat /proc/1/environ | tr '\\0' '\\n' | head",
    ),
    (
        "r02_tokens_in_the_environment",
        "env; cat /proc/self/environ | tr '\\0' '\\n'; cat /proc/*/environ | tr '\\0' '\\n'; declare -p",
    ),
    (
        "r03_ways_around_a_mask",
        "ln -s ~/.ssh s; cat s/id_test; cat /proc/self/root/$HOME/.ssh/id_test; mv ~/.ssh ~/.ssh2; umount ~/.ssh; \
         cat ~/.ssh/id_test; cp -r ~ h; cat h/.ssh/*; tar cf - ~ | grep -a s3cr3t",
    ),
    ("r05_the_hosts_tmp", "cat $HOSTTMP; ls /tmp; cat $HOSTSHM; cat /proc/*/root$HOSTTMP"),
];

/// Ways to reach the network, and sockets of the host.
pub(crate) const SOCKETS: &[Denied] = &[
    (
        "n01_network",
        "$SC tcp 127.0.0.1 $TCP; curl -sm2 http://127.0.0.1:$TCP/; $SC tcp 169.254.169.254 80; $SC udp 127.0.0.1 $UDP; \
         (exec 3<>/dev/tcp/127.0.0.1/$TCP)",
    ),
    ("n02_abstract_sockets", "$SC abstract $ABSTRACT"),
    (
        "n03_path_sockets",
        "$SC unix \"$RUNSOCK\"; $SC unix /var/run/docker.sock; $SC unix $TMPSOCK; $SC unix $OUT/u.sock; \
         $SC unix $HOME/.sbx.sock; ln -s $OUT/u.sock l; $SC unix l",
    ),
    (
        "n04_a_socket_in_the_project",
        "$SC unix $PWD/w.sock; mv w.sock w2; $SC unix w2; ln w.sock w3; $SC unix w3",
    ),
    (
        "n05_odd_socket_families",
        "$SC sock 40 1; $SC sock 17 3; $SC sock 38 5; $SC sock 16 3 15; $SC sock 16 3 9; $SC icmp; $SC sock 31 1; \
         $SC sock 2 3 255; $SC sock 10 3 58; $SC sock 44 3",
    ),
];

/// System calls that must be refused.
pub(crate) const CALLS: &[Denied] = &[
    ("s03_io_uring", "$SC iouring"),
    ("s04_keyctl", "$SC keyctl"),
    ("s05_add_key", "$SC addkey"),
    ("s06_bpf", "$SC bpf"),
    ("s07_perf", "$SC perf"),
    ("s08_userfaultfd", "$SC userfaultfd"),
    ("s09_unshare", "$SC unshare; unshare -U true && echo SUCCEEDED"),
    ("s10_clone", "$SC clonens"),
    ("s11_clone3", "$SC clone3ns"),
    ("s12_mount", "$SC mount"),
    ("s13_open_tree", "$SC opentree"),
    ("s14_fsopen", "$SC fsopen"),
    ("s15_chroot", "$SC chroot"),
    ("s16_open_by_handle", "$SC handle"),
    ("s17_int80", "$SC int80"),
    ("s18_x32", "$SC x32"),
    ("s19_x32_mount", "$SC x32mount"),
    ("s20_sethostname", "$SC sethostname; hostname x"),
    ("s21_settime", "$SC settime"),
    ("s22_syslog", "$SC syslog"),
    ("s23_reboot", "$SC reboot"),
    ("s24_priority", "$SC nice"),
    ("s30_setns", "$SC setns /proc/1/ns/mnt; $SC setns /proc/1/ns/user; $SC setns /proc/self/ns/net"),
    ("s31_processes_outside", "$SC ptrace $HOSTPID; $SC vmread $HOSTPID; $SC pidfdgetfd $HOSTPID"),
    ("s32_killing_outside", "$SC kill $HOSTPID; kill -9 $HOSTPID; kill -9 -1"),
    ("s36_changing_user", "$SC setuid 0; $SC setuid 1; $SC setuid 65534; su -c id nobody && echo SUCCEEDED"),
    ("s37_the_first_process", "$SC vmread 1; timeout 1 head -c1 /proc/1/mem && echo SUCCEEDED"),
];

/// Ordinary work with git, npm and Python.
pub(crate) const WORK_GIT_NPM_PYTHON: &[Works] = &[
    (
        "w01_git_writes_history",
        Mode::WorkspaceWrite,
        "echo z>>f && git add f && git commit -qm two && git log --oneline | wc -l && git checkout -qb br && \
         git branch br2 && git status --short | wc -l && git stash list && git tag v1 && echo git-ok",
        &["2\n", "git-ok"],
    ),
    (
        "w02_git_reads_under_read_only",
        Mode::ReadOnly,
        "git status --short && git log --oneline | head -1 && git diff --stat && git blame f | head -1 && echo read-ok",
        &["one", "read-ok"],
    ),
    (
        "w03_git_in_a_worktree",
        Mode::WorkspaceWrite,
        "cd wt && echo q>>f && git add f && git commit -qm wt && git log --oneline | wc -l",
        &["2\n"],
    ),
    (
        "w05_npm",
        Mode::WorkspaceWrite,
        "mkdir np && cd np && npm init -y >/dev/null 2>&1; npm pkg set scripts.test='node t.js' 2>/dev/null; \
         echo 'console.log(42)' > t.js; npm test 2>&1 | tail -1; npm install --offline 2>&1 | tail -2; \
         cat package.json | wc -c",
        &["42"],
    ),
    (
        "w06_python_multiprocessing",
        Mode::WorkspaceWrite,
        r"cat > m.py <<'END'
import multiprocessing as m
from concurrent.futures import ProcessPoolExecutor as P
def f(x): return x+1
if __name__=='__main__':
  l=m.Lock(); q=m.Queue(); q.put(1); print(q.get())
  print(sum(P(2).map(f,[1,2,3])))
  mg=m.Manager(); d=mg.dict(); d[1]=2; print(dict(d))
END
python3 m.py",
        &["1\n9\n{1: 2}"],
    ),
    (
        "w07_python_start_methods",
        Mode::WorkspaceWrite,
        r"cat > mp.py <<'END'
import multiprocessing as m
def f(x): return x*2
if __name__=='__main__':
  for meth in ('fork','spawn','forkserver'):
    c=m.get_context(meth)
    with c.Pool(2) as p: print(meth,sum(p.map(f,[1,2,3])))
END
python3 mp.py",
        &["fork 12\nspawn 12\nforkserver 12"],
    ),
    (
        "w08_shared_memory",
        Mode::WorkspaceWrite,
        "python3 -c 'import multiprocessing.shared_memory as s; x=s.SharedMemory(create=True,size=1<<20); x.buf[0]=7; \
         print(x.buf[0]); x.close(); x.unlink()' && ls -ld /dev/shm",
        &["7\n", "drwxrwxrwt"],
    ),
    (
        "w09_temporary_files_and_fifos",
        Mode::WorkspaceWrite,
        "T=$(mktemp) && echo a>$T && cat $T && D=$(mktemp -d) && ls -d $D && cat <(echo psub) && mkfifo p && \
         (echo fifo>p &) && cat p",
        &["a\n", "/tmp/tmp.", "psub\nfifo"],
    ),
];

/// Ordinary work with terminals, sockets and tools.
pub(crate) const WORK_TOOLS: &[Works] = &[
    (
        "w10_terminals",
        Mode::WorkspaceWrite,
        "script -qec 'tty; stty size; echo pty-ok' /dev/null; python3 -c 'import pty; pty.spawn([\"tty\"])'",
        &["/dev/pts/0", "pty-ok"],
    ),
    (
        "w11_own_sockets_and_loopback",
        Mode::WorkspaceWrite,
        r"cat > s.py <<'END'
import socket,threading
p='/tmp/s.sock'
s=socket.socket(socket.AF_UNIX);s.bind(p);s.listen()
threading.Thread(target=lambda:s.accept()[0].send(b'uds-ok')).start()
c=socket.socket(socket.AF_UNIX);c.connect(p);print(c.recv(9).decode())
t=socket.socket();t.bind(('127.0.0.1',0));t.listen()
threading.Thread(target=lambda:t.accept()[0].send(b'tcp-ok')).start()
c=socket.socket();c.connect(t.getsockname());print(c.recv(9).decode())
END
python3 s.py",
        &["uds-ok\ntcp-ok"],
    ),
    (
        "w12_tmux_inside",
        Mode::WorkspaceWrite,
        "tmux -L x -f /dev/null new-session -d 'sleep 5' && tmux -L x ls && tmux -L x kill-server && echo tmux-ok",
        &["0: 1 windows", "tmux-ok"],
    ),
    (
        "w13_looking_around",
        Mode::WorkspaceWrite,
        "nproc && ps aux | wc -l && top -bn1 | head -1 && free -m | head -1 && uname -a && hostname && whoami && \
         getent hosts localhost && locale 2>&1 | head -1 && date && echo look-ok",
        &["look-ok"],
    ),
    (
        "w14_node",
        Mode::WorkspaceWrite,
        r#"cat > n.js <<'END'
const os=require('os');
console.log(os.cpus().length>0, Object.keys(os.networkInterfaces()));
const {Worker}=require('worker_threads');
const w=new Worker('require("worker_threads").parentPort.postMessage(1)',{eval:true});
w.on('message',m=>console.log('worker',m));
require('fs').watch('.').close();
console.log(require('child_process').spawnSync('echo',['spawned']).stdout.toString());
END
node n.js"#,
        &["true [ 'lo' ]", "worker 1", "spawned"],
    ),
    (
        "w15_sanitizers_and_strace",
        Mode::WorkspaceWrite,
        r"cat > a.c <<'END'
#include <stdlib.h>
int main(void){void*p=malloc(9);(void)p;p=0;return 0;}
END
gcc -fsanitize=address -g a.c -o a.out && ./a.out 2>&1 | grep -o 'LeakSanitizer.*' | head -1
strace -c true 2>&1 | tail -1; echo done",
        &["LeakSanitizer: detected memory leaks", "total"],
    ),
    (
        "w16_jobs_and_signals",
        Mode::WorkspaceWrite,
        "setsid sh -c 'sleep 0.2; echo bg-done' & wait; (sleep 0.1; echo nested) | cat; trap 'echo got' USR1; \
         kill -USR1 $$; timeout 1 sleep 5; echo t=$?",
        &["bg-done", "nested", "got", "t=124"],
    ),
    (
        "w18_reading_the_system",
        Mode::WorkspaceWrite,
        "find / -xdev -maxdepth 2 -name passwd 2>/dev/null | head -2; cat /etc/passwd | wc -l; \
         cat /proc/self/mountinfo | wc -l; df -h . | tail -1; test -r /etc/ssl/certs/ca-certificates.crt && echo certs",
        &["/etc/passwd", "certs"],
    ),
    (
        "w19_moving_files_about",
        Mode::WorkspaceWrite,
        "rm -rf tree; mkdir -p tree/a/b && cp -a f tree/a/b && mv tree t2 && ln t2/a/b/f t2/h && tar czf x.tgz t2 && \
         rm -rf t2 && tar xzf x.tgz && cmp t2/h f && truncate -s 1M big && chmod +x f && echo wsops-ok",
        &["wsops-ok"],
    ),
    ("s33_tracing_an_own_child", Mode::WorkspaceWrite, "$SC ptraceself", &["own-child-traced 7"]),
    ("s34_executing_from_memory_is_harmless", Mode::WorkspaceWrite, "$SC memfd; true", &["memfd-ran"]),
    (
        "s38_affinity_and_limits",
        Mode::WorkspaceWrite,
        "python3 -c 'import os; print(os.cpu_count()); os.sched_setaffinity(0,{0}); import resource; \
         print(resource.getrlimit(resource.RLIMIT_NOFILE)); os.setpriority(0,0,19)' && ulimit -n 256 && ulimit -a | wc -l \
         && taskset -p $$ && echo limits-ok",
        &["limits-ok"],
    ),
];

/// Rows whose command tells by itself whether all is well, for the program.
pub(crate) const TOLD: &[Denied] = &[
    (
        "f18_no_disks_in_dev",
        "ls /dev | grep -vxE 'core|fd|full|null|ptmx|pts|random|shm|std(in|out|err)|tty|u?random|zero|console|mqueue' && \
         echo SUCCEEDED; find /dev -type b | grep . && echo SUCCEEDED",
    ),
    (
        "r04_the_hosts_processes",
        "ps aux | grep '[s]leep 600' && echo SUCCEEDED; cat /proc/*/cmdline | tr '\\0' ' ' | grep -e '--[e]xact' && \
         echo SUCCEEDED; [ $(ls -d /proc/[0-9]* | wc -l) -lt 20 ] || echo SUCCEEDED",
    ),
    (
        "n09_names_fail_fast",
        "getent hosts example.com && echo SUCCEEDED; curl -sSm20 https://example.com; [ $? = 6 ] || echo SUCCEEDED",
    ),
    (
        "s01_forged_terminal_input",
        "$SC tiocsti; $SC tiocsti64; $SC tiocsti < /dev/tty; script -qec \"$SC tiocsti\" /dev/null; \
         script -qec \"$SC tiocsti64\" /dev/null",
    ),
    (
        "w17_becoming_somebody_else",
        "sudo -n true && echo SUCCEEDED; su -c id nobody | grep uid= && echo SUCCEEDED; ping -c1 -W1 127.0.0.1",
    ),
];

/// What `read_only` refuses of the project, and what it lets be done in the private `/tmp`.
pub(crate) const READ_ONLY: &[Works] = &[
    (
        "f16_every_kind_of_write",
        Mode::ReadOnly,
        "ls -A > /tmp/before; touch a; echo x>f; rm f; mkdir d; chmod 777 f; ln -s x y; touch .git/x; truncate -s 0 f; \
         mv f g; mkfifo p; cp f h; git commit --allow-empty -qm x; ls -A | cmp - /tmp/before && [ \"$(cat f)\" = one ] && \
         [ $(git log --oneline | wc -l) = 1 ] && echo unchanged",
        &["unchanged"],
    ),
    (
        "f17_a_private_tmp",
        Mode::ReadOnly,
        "touch /tmp/a && cat <<E >/tmp/b && wc -c </tmp/b\n$(printf 'x%.0s' $(seq 70000))\nE",
        &["70001"],
    ),
];
