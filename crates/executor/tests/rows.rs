//! The escapes that must be denied and the ordinary work that must go on, as root and as an ordinary user.
//!
//! A command of a `denied` row may do what it likes: afterwards nothing outside the project, nothing protected
//! inside it, no listener and no process of the host may have been touched, no secret may stand in the output,
//! and no helper call may have succeeded.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests fail as tests do")]

mod common;

use cmdgate_executor::{GitAccess, Network, Outcome, PrivateTmp, Sandbox};
use common::{Fixture, all_text, both, shown, stdout, worked};

/// Runs one command and says what it damaged; nothing when all is well.
async fn attempt(sandbox: Sandbox, fixture: &mut Fixture, command: &str) -> Vec<String> {
    let finished = fixture.run(sandbox, command).await;
    let mut damage = fixture.harm(&finished);
    if !matches!(finished.outcome, Outcome::Exited(_)) || !damage.is_empty() {
        damage.push(shown(&finished));
    }
    damage
}

async fn denied(sandbox: Sandbox, command: &str) {
    let damage = attempt(sandbox, &mut Fixture::new(), command).await;
    assert!(damage.is_empty(), "{}", damage.join("\n"));
}

/// Every row in turn, each with a project of its own, and all that failed at the end.
macro_rules! denied {
    ($test:ident: $($name:ident: $command:expr;)*) => {
        #[test]
        fn $test() {
            both(|| async {
                let mut failed = Vec::new();
                for (name, command) in [$((stringify!($name), $command)),*] {
                    let damage = attempt(Sandbox::workspace_write(), &mut Fixture::new(), command).await;
                    if !damage.is_empty() {
                        failed.push(format!("{name}: {}", damage.join("\n")));
                    }
                }
                assert!(failed.is_empty(), "{}", failed.join("\n\n"));
            });
        }
    };
}

macro_rules! works {
    ($test:ident: $($name:ident: $sandbox:expr, $command:expr, [$($part:expr),*];)*) => {
        #[test]
        fn $test() {
            both(|| async {
                $({
                    let mut fixture = Fixture::new();
                    let finished = fixture.run($sandbox, $command).await;
                    eprintln!("{}", stringify!($name));
                    worked(&finished, &[$($part),*]);
                    fixture.unharmed(&finished);
                })*
            });
        }
    };
}

// contract: S25
denied! {
    escapes_by_file_system:
    f01_absolute_paths: "touch $OUT/abs; echo x >> /etc/sbx_test; touch $HOME/sbx_test; touch /sbx_test";
    f02_symlink: "ln -s $OUT lnk && touch lnk/sym; echo x > lnk/victim";
    f03_new_hard_link: "ln $OUT/victim hard && echo pwn > hard";
    f05_own_root: "touch /proc/self/root$OUT/psr; touch /proc/1/root$OUT/p1r; touch /proc/1/cwd/../p1c";
    f06_every_root: "for p in /proc/[0-9]*; do touch $p/root$OUT/pall; touch $p/cwd/../pcwd; done";
    f07_dot_dot: "touch ../outside/dd; touch ../../../../../../../../..$OUT/dd";
    f08_remount: "mount -o remount,rw,bind / && touch $OUT/rm; mount --bind $OUT f; $SC remount; $SC mount";
    f09_new_user_namespace:
        "unshare -Urm sh -c 'mount -o remount,rw,bind / ; touch $OUT/ur; umount -l / ; touch $OUT/ur'";
    f10_umount_a_mask:
        "umount -l .git/hooks; $SC umount $PWD/.git/hooks; $SC umount $HOME/.ssh; cat $HOME/.ssh/id_test; \
         echo x > .git/hooks/pre-commit";
    f11_set_id_bits:
        "chmod 4755 f; cp /bin/true s && chmod u+s s; chmod g+s s; $SC suidchmod s; $SC suidfchmodat2 s";
    f12_created_with_set_id: "$SC suidopen so; $SC suidopenat2 so2";
    f13_device_nodes: "$SC mknod n; $SC mknodblk b; mknod c c 1 5 && head -c1 c";
    f14_capabilities_on_files:
        "setcap cap_sys_admin+ep f && echo SUCCEEDED; setfattr -n trusted.x -v 1 f && echo SUCCEEDED; \
         python3 -c 'import os; os.setxattr(\"f\", \"security.capability\", \
         bytes.fromhex(\"0100000200200000000000000000000000000000\")); print(\"SUCCEEDED\")'";
    f15_replacing_the_project: "mv $PWD $PWD.old; rmdir $PWD; cd ..; mv $WS x; ln -s / $WS; mv outside x";
    f19_kernel_settings:
        "echo x > /proc/sys/kernel/core_pattern; echo h > /proc/sysrq-trigger; echo x > /proc/sys/kernel/hostname; \
         sysctl -w kernel.core_pattern=x";
    f20_sysfs_and_control_groups:
        "echo 1 > /sys/kernel/mm/transparent_hugepage/khugepaged/defrag && echo SUCCEEDED; \
         find /sys/fs/cgroup -name cgroup.procs -maxdepth 3 2>/dev/null | while read p; do echo $$ > $p && echo SUCCEEDED; \
         done; mkdir /sys/fs/cgroup/sbx /sys/fs/cgroup/memory/sbx && echo SUCCEEDED";
    f21_leaked_descriptor:
        "$SC fdwrite $LEAKED leak; echo y > /proc/self/fd/$LEAKED/leakb; for d in /proc/self/fd/*; do touch $d/leakc; \
         done; ls -l /proc/self/fd";
    f22_directory_swapped_for_a_symlink:
        "mkdir d; ln -sfn $OUT d; touch d/toctou; rm -rf d; ln -sfn $OUT d; touch d/toctou";
}

// contract: S26
denied! {
    changes_of_protected_paths:
    p01_hooks: "echo x > .git/hooks/pre-commit; mkdir -p .git/hooks/x; rm -rf .git/hooks; mv .git/hooks h";
    p02_config:
        "git config core.fsmonitor /tmp/x; echo '[core]fsmonitor=/x' >> .git/config; printf x > .git/c && mv .git/c \
         .git/config; rm .git/config; ln -sf /tmp/x .git/config";
    p03_moving_git_away:
        "mv .git .git2 && mkdir -p .git && cp -r .git2/* .git/ && echo x > .git/hooks/pre-commit";
    p05_existing_editor_settings:
        "echo x > .vscode/tasks.json; rm -rf .vscode; mv .vscode v2; echo x > .vscode/settings.json; echo K=2 > .env; \
         rm .env; mv .env e; sed -i s/1/2/ .env";
}

// contract: S19
denied! {
    reads_of_secrets:
    r01_files_with_secrets:
        "cat ~/.ssh/id_test; ls -A ~/.ssh; cat /etc/shadow && echo SUCCEEDED; cat ~/.npmrc ~/.netrc \
         ~/.config/gh/hosts.yml; cat /proc/1/environ | tr '\\0' '\\n' | head";
    r02_tokens_in_the_environment:
        "env; cat /proc/self/environ | tr '\\0' '\\n'; cat /proc/*/environ | tr '\\0' '\\n'; declare -p";
    r03_ways_around_a_mask:
        "ln -s ~/.ssh s; cat s/id_test; cat /proc/self/root/$HOME/.ssh/id_test; mv ~/.ssh ~/.ssh2; umount ~/.ssh; \
         cat ~/.ssh/id_test; cp -r ~ h; cat h/.ssh/*; tar cf - ~ | grep -a s3cr3t";
    r05_the_hosts_tmp: "cat $HOSTTMP; ls /tmp; cat $HOSTSHM; cat /proc/*/root$HOSTTMP";
}

// contract: S25
denied! {
    network_and_sockets:
    n01_network:
        "$SC tcp 127.0.0.1 $TCP; curl -sm2 http://127.0.0.1:$TCP/; $SC tcp 169.254.169.254 80; $SC udp 127.0.0.1 $UDP; \
         (exec 3<>/dev/tcp/127.0.0.1/$TCP)";
    n02_abstract_sockets: "$SC abstract $ABSTRACT";
    n03_path_sockets:
        "$SC unix \"$RUNSOCK\"; $SC unix /var/run/docker.sock; $SC unix $TMPSOCK; $SC unix $OUT/u.sock; \
         $SC unix $HOME/.sbx.sock; ln -s $OUT/u.sock l; $SC unix l";
    n04_a_socket_in_the_project:
        "$SC unix $PWD/w.sock; mv w.sock w2; $SC unix w2; ln w.sock w3; $SC unix w3";
    n05_odd_socket_families:
        "$SC sock 40 1; $SC sock 17 3; $SC sock 38 5; $SC sock 16 3 15; $SC sock 16 3 9; $SC icmp; $SC sock 31 1; \
         $SC sock 2 3 255; $SC sock 10 3 58; $SC sock 44 3";
}

// contract: S25
denied! {
    system_calls:
    s03_io_uring: "$SC iouring";
    s04_keyctl: "$SC keyctl";
    s05_add_key: "$SC addkey";
    s06_bpf: "$SC bpf";
    s07_perf: "$SC perf";
    s08_userfaultfd: "$SC userfaultfd";
    s09_unshare: "$SC unshare; unshare -U true && echo SUCCEEDED";
    s10_clone: "$SC clonens";
    s11_clone3: "$SC clone3ns";
    s12_mount: "$SC mount";
    s13_open_tree: "$SC opentree";
    s14_fsopen: "$SC fsopen";
    s15_chroot: "$SC chroot";
    s16_open_by_handle: "$SC handle";
    s17_int80: "$SC int80";
    s18_x32: "$SC x32";
    s19_x32_mount: "$SC x32mount";
    s20_sethostname: "$SC sethostname; hostname x";
    s21_settime: "$SC settime";
    s22_syslog: "$SC syslog";
    s23_reboot: "$SC reboot";
    s24_priority: "$SC nice";
    s30_setns: "$SC setns /proc/1/ns/mnt; $SC setns /proc/1/ns/user; $SC setns /proc/self/ns/net";
    s31_processes_outside: "$SC ptrace $HOSTPID; $SC vmread $HOSTPID; $SC pidfdgetfd $HOSTPID";
    s32_killing_outside: "$SC kill $HOSTPID; kill -9 $HOSTPID; kill -9 -1";
    s36_changing_user: "$SC setuid 0; $SC setuid 1; $SC setuid 65534; su -c id nobody && echo SUCCEEDED";
    s37_the_first_process: "$SC vmread 1; timeout 1 head -c1 /proc/1/mem && echo SUCCEEDED";
}

#[test]
fn f16_read_only_refuses_every_kind_of_write() {
    both(|| async {
        let mut fixture = Fixture::new();
        let before = std::fs::read_dir(&fixture.project).unwrap().count();
        let command = "touch a; echo x>f; rm f; mkdir d; chmod 777 f; ln -s x y; touch .git/x; truncate -s 0 f; \
                       mv f g; mkfifo p; cp f h; git commit --allow-empty -qm x";
        let finished = fixture.run(Sandbox::read_only(), command).await;
        fixture.unharmed(&finished);
        assert_eq!(std::fs::read_to_string(fixture.project.join("f")).unwrap(), "one\n");
        assert_eq!(std::fs::read_dir(&fixture.project).unwrap().count(), before, "{}", shown(&finished));
    });
}

#[test]
fn f17_read_only_still_has_a_private_tmp() {
    both(|| async {
        let mut fixture = Fixture::new();
        let command = format!("touch /tmp/a && cat <<E >/tmp/b && wc -c </tmp/b\n{}\nE", "x".repeat(70_000));
        let finished = fixture.run(Sandbox::read_only(), command).await;
        worked(&finished, &["70001"]);
        fixture.unharmed(&finished);
    });
}

#[test]
fn f18_no_disks_in_dev() {
    both(|| async {
        let mut fixture = Fixture::new();
        let finished =
            fixture.run(Sandbox::workspace_write(), "ls /dev | tr '\\n' ' '; find /dev -type b").await;
        fixture.unharmed(&finished);
        let known =
            "core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero console mqueue";
        for device in stdout(&finished).split_whitespace() {
            assert!(known.split(' ').any(|name| name == device), "{device} in /dev: {}", shown(&finished));
        }
    });
}

#[test]
fn r04_the_hosts_processes_are_not_seen() {
    both(|| async {
        let mut fixture = Fixture::new();
        let command =
            "ps aux; cat /proc/*/cmdline | tr '\\0' ' '; ls -d /proc/[0-9]* | wc -l; ls -d /proc/$HOSTPID";
        let finished = fixture.run(Sandbox::workspace_write(), command).await;
        fixture.unharmed(&finished);
        assert!(!stdout(&finished).contains("sleep 600"), "{}", shown(&finished));
        assert!(!stdout(&finished).contains("--exact"), "{}", shown(&finished));
    });
}

#[test]
fn n06_tmux_of_the_host_takes_no_keys() {
    both(|| async {
        let mut fixture = Fixture::new();
        let socket = fixture.outside.join("tmux.sock");
        let tmux = |arguments: &[&str]| {
            std::process::Command::new("tmux")
                .arg("-S")
                .arg(&socket)
                .args(arguments)
                .env_remove("TMUX")
                .env("TERM", "dumb")
                .output()
                .unwrap()
        };
        let started = tmux(&["-f", "/dev/null", "new-session", "-d", "sh"]);
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        fixture.settle();
        let command = "for s in $OUT/tmux.sock /tmp/tmux-*/default; do \
                       tmux -S $s send-keys 'touch $OUT/tmuxesc' Enter && echo SUCCEEDED; done; \
                       env | grep -E 'TMUX|SSH_AUTH|DBUS|DISPLAY' && echo SUCCEEDED";
        let finished = fixture.run(Sandbox::workspace_write(), command).await;
        let text = all_text(&finished);
        tmux(&["kill-server"]);
        assert!(!text.contains("SUCCEEDED"), "{text}");
        assert!(!fixture.outside.join("tmuxesc").exists(), "{text}");
    });
}

#[test]
fn n07_network_on_reaches_the_host() {
    both(|| async {
        let mut fixture = Fixture::new();
        let sandbox = Sandbox { network: Network::On, ..Sandbox::workspace_write() };
        let finished = fixture.run(sandbox, "$SC tcp 127.0.0.1 $TCP").await;
        worked(&finished, &["SUCCEEDED tcp"]);
        assert_eq!(fixture.damage(), ["the TCP listener was reached"]);
    });
}

#[test]
fn n08_with_the_network_on_no_unix_socket_can_be_made() {
    both(|| async {
        let sandbox = Sandbox { network: Network::On, ..Sandbox::workspace_write() };
        denied(sandbox, "$SC abstract $ABSTRACT; $SC unix $OUT/u.sock; $SC sock 1 1; $SC sock 1 2").await;
    });
}

#[test]
fn n09_names_fail_fast_without_a_network() {
    both(|| async {
        let mut fixture = Fixture::new();
        let command = "getent hosts example.com; curl -sSm20 https://example.com; echo rc=$?";
        let finished = fixture.run(Sandbox::workspace_write(), command).await;
        fixture.unharmed(&finished);
        // 6: the name was not resolved. 28 would be curl's own limit of twenty seconds.
        assert!(stdout(&finished).contains("rc=6"), "{}", shown(&finished));
    });
}

#[test]
fn s01_terminal_input_cannot_be_forged() {
    both(|| async {
        let command = "$SC tiocsti; $SC tiocsti64; $SC tiocsti < /dev/tty; script -qec \"$SC tiocsti\" /dev/null; \
                       script -qec \"$SC tiocsti64\" /dev/null";
        denied(Sandbox::workspace_write(), command).await;
    });
}

#[test]
fn s35_shared_memory_of_the_host_is_not_seen() {
    both(|| async {
        let mut fixture = Fixture::new();
        let key = (common::unique() % 1_000_000 + 1000).to_string();
        let bare =
            |call: &str| std::process::Command::new(&fixture.helper).args([call, &key]).output().unwrap();
        assert!(String::from_utf8_lossy(&bare("shmcreate").stdout).contains("SUCCEEDED"));
        assert!(String::from_utf8_lossy(&bare("shmget").stdout).contains("SUCCEEDED"));
        let finished = fixture.run(Sandbox::workspace_write(), format!("$SC shmget {key}; ipcs -m")).await;
        bare("shmremove");
        fixture.unharmed(&finished);
    });
}

// contract: S26, P15
works! {
    git_npm_and_python_work:
    w01_git_writes_history: Sandbox::workspace_write(),
        "echo z>>f && git add f && git commit -qm two && git log --oneline | wc -l && git checkout -qb br && \
         git branch br2 && git status --short | wc -l && git stash list && git tag v1 && echo git-ok",
        ["2\n", "git-ok"];
    w02_git_reads_under_read_only: Sandbox::read_only(),
        "git status --short && git log --oneline | head -1 && git diff --stat && git blame f | head -1 && echo read-ok",
        ["one", "read-ok"];
    w03_git_in_a_worktree: Sandbox::workspace_write(),
        "cd wt && echo q>>f && git add f && git commit -qm wt && git log --oneline | wc -l",
        ["2\n"];
    w05_npm: Sandbox::workspace_write(),
        "mkdir np && cd np && npm init -y >/dev/null 2>&1; npm pkg set scripts.test='node t.js' 2>/dev/null; \
         echo 'console.log(42)' > t.js; npm test 2>&1 | tail -1; npm install --offline 2>&1 | tail -2; \
         cat package.json | wc -c",
        ["42"];
    w06_python_multiprocessing: Sandbox::workspace_write(),
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
        ["1\n9\n{1: 2}"];
    w07_python_start_methods: Sandbox::workspace_write(),
        r"cat > mp.py <<'END'
import multiprocessing as m
def f(x): return x*2
if __name__=='__main__':
  for meth in ('fork','spawn','forkserver'):
    c=m.get_context(meth)
    with c.Pool(2) as p: print(meth,sum(p.map(f,[1,2,3])))
END
python3 mp.py",
        ["fork 12\nspawn 12\nforkserver 12"];
    w08_shared_memory: Sandbox::workspace_write(),
        "python3 -c 'import multiprocessing.shared_memory as s; x=s.SharedMemory(create=True,size=1<<20); x.buf[0]=7; \
         print(x.buf[0]); x.close(); x.unlink()' && ls -ld /dev/shm",
        ["7\n", "drwxrwxrwt"];
    w09_temporary_files_and_fifos: Sandbox::workspace_write(),
        "T=$(mktemp) && echo a>$T && cat $T && D=$(mktemp -d) && ls -d $D && cat <(echo psub) && mkfifo p && \
         (echo fifo>p &) && cat p",
        ["a\n", "/tmp/tmp.", "psub\nfifo"];
}

// contract: P15
works! {
    terminals_sockets_and_tools_work:
    w10_terminals: Sandbox::workspace_write(),
        "script -qec 'tty; stty size; echo pty-ok' /dev/null; python3 -c 'import pty; pty.spawn([\"tty\"])'",
        ["/dev/pts/0", "pty-ok"];
    w11_own_sockets_and_loopback: Sandbox::workspace_write(),
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
        ["uds-ok\ntcp-ok"];
    w12_tmux_inside: Sandbox::workspace_write(),
        "tmux -L x -f /dev/null new-session -d 'sleep 5' && tmux -L x ls && tmux -L x kill-server && echo tmux-ok",
        ["0: 1 windows", "tmux-ok"];
    w13_looking_around: Sandbox::workspace_write(),
        "nproc && ps aux | wc -l && top -bn1 | head -1 && free -m | head -1 && uname -a && hostname && whoami && \
         getent hosts localhost && locale 2>&1 | head -1 && date && echo look-ok",
        ["look-ok"];
    w14_node: Sandbox::workspace_write(),
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
        ["true [ 'lo' ]", "worker 1", "spawned"];
    w15_sanitizers_and_strace: Sandbox::workspace_write(),
        r"cat > a.c <<'END'
#include <stdlib.h>
int main(void){void*p=malloc(9);(void)p;p=0;return 0;}
END
gcc -fsanitize=address -g a.c -o a.out && ./a.out 2>&1 | grep -o 'LeakSanitizer.*' | head -1
strace -c true 2>&1 | tail -1; echo done",
        ["LeakSanitizer: detected memory leaks", "total"];
    w16_jobs_and_signals: Sandbox::workspace_write(),
        "setsid sh -c 'sleep 0.2; echo bg-done' & wait; (sleep 0.1; echo nested) | cat; trap 'echo got' USR1; \
         kill -USR1 $$; timeout 1 sleep 5; echo t=$?",
        ["bg-done", "nested", "got", "t=124"];
    w18_reading_the_system: Sandbox::workspace_write(),
        "find / -xdev -maxdepth 2 -name passwd 2>/dev/null | head -2; cat /etc/passwd | wc -l; \
         cat /proc/self/mountinfo | wc -l; df -h . | tail -1; test -r /etc/ssl/certs/ca-certificates.crt && echo certs",
        ["/etc/passwd", "certs"];
    w19_moving_files_about: Sandbox::workspace_write(),
        "rm -rf tree; mkdir -p tree/a/b && cp -a f tree/a/b && mv tree t2 && ln t2/a/b/f t2/h && tar czf x.tgz t2 && \
         rm -rf t2 && tar xzf x.tgz && cmp t2/h f && truncate -s 1M big && chmod +x f && echo wsops-ok",
        ["wsops-ok"];
    s33_tracing_an_own_child: Sandbox::workspace_write(), "$SC ptraceself", ["own-child-traced 7"];
    s34_executing_from_memory_is_harmless: Sandbox::workspace_write(), "$SC memfd; true", ["memfd-ran"];
    s38_affinity_and_limits: Sandbox::workspace_write(),
        "python3 -c 'import os; print(os.cpu_count()); os.sched_setaffinity(0,{0}); import resource; \
         print(resource.getrlimit(resource.RLIMIT_NOFILE)); os.setpriority(0,0,5)' && ulimit -n 256 && ulimit -a | wc -l \
         && taskset -p $$ && echo limits-ok",
        ["limits-ok"];
}

#[test]
fn w04_cargo_builds_and_tests() {
    both(|| async {
        let mut fixture = Fixture::new();
        let Some(toolchain) = toolchain() else {
            // A toolchain in root's home cannot be reached by another user; the half as root covers it.
            assert!(!common::is_root(), "cargo is needed to build this very test");
            return;
        };
        let path = format!("{}:/usr/bin:/bin", toolchain.display());
        let command = "cargo init -q --vcs none --name x cr && cd cr && cargo build -q --offline && \
                       cargo test -q --offline 2>&1 | tail -2 && ./target/debug/x";
        let finished = fixture
            .executor(Sandbox::workspace_write())
            .shell(command)
            .env("PATH", path)
            .env("CARGO_HOME", "/tmp/cargo")
            .run()
            .await
            .unwrap();
        worked(&finished, &["test result: ok", "Hello, world!"]);
        fixture.unharmed(&finished);
    });
}

/// The `bin` directory of the toolchain that builds this test, when this user can reach it.
fn toolchain() -> Option<std::path::PathBuf> {
    let cargo = std::path::Path::new(env!("CARGO"));
    rustix::fs::access(cargo, rustix::fs::Access::EXEC_OK).ok()?;
    cargo.parent().map(std::path::Path::to_owned)
}

#[test]
fn w17_becoming_somebody_else_is_refused_cleanly() {
    both(|| async {
        let mut fixture = Fixture::new();
        let command = "sudo -n true; su -c id nobody; ping -c1 -W1 127.0.0.1; echo end";
        let finished = fixture.run(Sandbox::workspace_write(), command).await;
        worked(&finished, &["end"]);
        fixture.unharmed(&finished);
        assert!(!stdout(&finished).contains("uid="), "{}", shown(&finished));
    });
}

// contract: S26
#[test]
fn p08_git_read_only_keeps_the_objects() {
    both(|| async {
        let mut fixture = Fixture::new();
        let sandbox = Sandbox { git: GitAccess::ReadOnly, ..Sandbox::workspace_write() };
        let command = "rm -rf .git; mv .git x; git log --oneline; echo q >> f; git commit -qam x";
        let finished = fixture.run(sandbox, command).await;
        fixture.unharmed(&finished);
        assert!(stdout(&finished).contains("one"), "{}", shown(&finished));
        let log = std::process::Command::new("git")
            .arg("-C")
            .arg(&fixture.project)
            .args(["log", "--oneline"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&log.stdout).lines().count(), 1);
    });
}

#[test]
fn a_tmp_in_memory_is_bounded() {
    both(|| async {
        let mut fixture = Fixture::new();
        let sandbox = Sandbox { tmp: PrivateTmp::Memory(8 << 20), ..Sandbox::read_only() };
        let command = "head -c 64M /dev/zero > /tmp/big; stat -c %s /tmp/big";
        let finished = fixture.run(sandbox, command).await;
        worked(&finished, &["8388608"]);
        fixture.unharmed(&finished);
    });
}

/// The attacks are real: without a sandbox the same checks find the damage.
#[test]
fn without_a_sandbox_the_attacks_are_seen_to_work() {
    both(|| async {
        let attacks = [
            "touch $OUT/abs",
            "ln -s $OUT lnk && touch lnk/sym",
            "ln $OUT/victim hard && echo pwn > hard",
            "touch ../outside/dd",
            "echo x > .git/hooks/pre-commit",
            "git config core.fsmonitor /tmp/x",
            "mv .git .git2 && mkdir -p .git && cp -r .git2/* .git/ && echo x > .git/hooks/pre-commit",
            "echo x > .vscode/tasks.json",
            "echo K=2 > .env",
            "mv $PWD $PWD.old",
            "$SC tcp 127.0.0.1 $TCP",
            "$SC udp 127.0.0.1 $UDP",
            "$SC abstract $ABSTRACT",
            "$SC unix $OUT/u.sock",
            "$SC unix $HOME/.sbx.sock",
            "$SC unix $TMPSOCK",
            "$SC unix w.sock",
            "kill -9 $HOSTPID",
        ];
        for attack in attacks {
            let mut fixture = Fixture::new();
            let finished = fixture.run(Sandbox::danger_full_access(), attack).await;
            assert!(!fixture.damage().is_empty(), "{attack} did no damage: {}", shown(&finished));
        }
        let fixture = Fixture::new();
        let looks = [
            ("cat ~/.ssh/id_test", common::SECRET),
            ("cat $HOSTTMP", common::SECRET),
            ("cat /proc/$PPID/environ", common::TOKEN),
        ];
        for (look, secret) in looks {
            let finished = fixture.run(Sandbox::danger_full_access(), look).await;
            assert!(all_text(&finished).contains(secret), "{look}: {}", shown(&finished));
        }
        let calls =
            ["unshare", "clonens", "suidchmod f", "suidopen so", "kill $HOSTPID", "tcp 127.0.0.1 $TCP"];
        for call in calls {
            let finished = fixture.run(Sandbox::danger_full_access(), format!("$SC {call}")).await;
            assert!(all_text(&finished).contains("SUCCEEDED"), "{call}: {}", shown(&finished));
        }
    });
}
