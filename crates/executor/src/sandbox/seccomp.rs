//! The two system call filters, as bytes for `--add-seccomp-fd`.
//!
//! The first answers EPERM to what no command of a coding agent needs and what has been a way out of
//! sandboxes before. The second answers ENOSYS to calls whose arguments lie behind a pointer and cannot be
//! looked at (the C library then falls back), and to every number above the newest known one, which covers
//! the x32 table and next year's calls.
//!
//! `ptrace` stays allowed: the PID namespace bounds it, and leak checkers, strace and debuggers need it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

/// The newest system call that this list was checked against: `removexattrat`, Linux 6.13. The table is one and the
/// same above 424 on every architecture that is supported.
const NEWEST_KNOWN: u32 = 466;

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;

/// Always refused, whatever the arguments.
const REFUSED: &[i64] = &[
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    // Key rings belong to the user, not to the namespace.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Runs system calls outside the filter's sight.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    // Other processes and files by handle.
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
];

/// `CLONE_NEW*` of clone(2): cgroup, uts, ipc, user, pid, net, mount.
const CLONE_NAMESPACES: [u64; 7] =
    [0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000, 0x0002_0000];
/// Only unshare(2) takes this one; in clone(2) the bits are the signal.
const CLONE_NEWTIME: u64 = 0x80;
/// Puts characters into a terminal's input as if typed.
const TIOCSTI: u64 = 0x5412;
/// The same for the virtual console.
const TIOCLINUX: u64 = 0x541c;
const SET_ID_BITS: [u64; 2] = [0o4000, 0o2000];
const O_CREAT: u64 = 0o100;
const AF_UNIX: u64 = 1;
const AF_INET: u64 = 2;
const AF_INET6: u64 = 10;
const AF_NETLINK: u64 = 16;
const SOCK_RAW: u64 = 3;
/// The mask that takes `SOCK_NONBLOCK` and `SOCK_CLOEXEC` off a socket type.
const SOCK_TYPE_MASK: u64 = 0xf;

/// The two filters of a sandbox, in the order in which they are installed.
///
/// # Errors
/// When the filter cannot be compiled, which a test over both variants rules out.
pub fn filters(unix_sockets: bool) -> Result<&'static [Vec<u8>; 2], String> {
    static WITH: OnceLock<Result<[Vec<u8>; 2], String>> = OnceLock::new();
    static WITHOUT: OnceLock<Result<[Vec<u8>; 2], String>> = OnceLock::new();
    let cell = if unix_sockets { &WITH } else { &WITHOUT };
    cell.get_or_init(|| {
        refuse(unix_sockets)
            .map(|refuse| [bytes(&refuse), bytes(&absent())])
            .map_err(|error| error.to_string())
    })
    .as_ref()
    .map_err(Clone::clone)
}

fn bytes(program: &[sock_filter]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for instruction in program {
        bytes.extend_from_slice(&instruction.code.to_ne_bytes());
        bytes.push(instruction.jt);
        bytes.push(instruction.jf);
        bytes.extend_from_slice(&instruction.k.to_ne_bytes());
    }
    bytes
}

fn refuse(unix_sockets: bool) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|&number| (number, Vec::new())).collect();
    let mut add =
        |number: i64, alternatives: Vec<SeccompRule>| rules.entry(number).or_default().extend(alternatives);

    let namespaces = |extra: Option<u64>| -> Result<Vec<SeccompRule>, BackendError> {
        CLONE_NAMESPACES.iter().copied().chain(extra).map(|flag| rule(&[bits(0, flag)])).collect()
    };
    add(libc::SYS_clone, namespaces(None)?);
    add(libc::SYS_unshare, namespaces(Some(CLONE_NEWTIME))?);

    // The request is compared as 32 bits, as the kernel does: CVE-2019-10063 set higher bits to pass by.
    add(libc::SYS_ioctl, vec![rule(&[equals(1, TIOCSTI)])?, rule(&[equals(1, TIOCLINUX)])?]);

    for set_id in SET_ID_BITS {
        add(libc::SYS_fchmod, vec![rule(&[bits(1, set_id)])?]);
        add(libc::SYS_fchmodat, vec![rule(&[bits(2, set_id)])?]);
        add(libc::SYS_fchmodat2, vec![rule(&[bits(2, set_id)])?]);
        add(libc::SYS_mknodat, vec![rule(&[bits(2, set_id)])?]);
        add(libc::SYS_openat, vec![rule(&[bits(2, O_CREAT), bits(3, set_id)])?]);
        #[cfg(target_arch = "x86_64")]
        {
            add(libc::SYS_chmod, vec![rule(&[bits(1, set_id)])?]);
            add(libc::SYS_creat, vec![rule(&[bits(1, set_id)])?]);
            add(libc::SYS_mknod, vec![rule(&[bits(1, set_id)])?]);
            add(libc::SYS_open, vec![rule(&[bits(1, O_CREAT), bits(2, set_id)])?]);
        }
    }

    let mut families = vec![AF_INET, AF_INET6, AF_NETLINK];
    if unix_sockets {
        families.push(AF_UNIX);
    }
    let other: Vec<Condition> = families.iter().map(|&family| (0, SeccompCmpOp::Ne, family)).collect();
    let raw = (1, SeccompCmpOp::MaskedEq(SOCK_TYPE_MASK), SOCK_RAW);
    add(
        libc::SYS_socket,
        vec![
            rule(&other)?,
            rule(&[equals(0, AF_INET), raw.clone()])?,
            rule(&[equals(0, AF_INET6), raw])?,
            // Of netlink only the routing family, which lists interfaces; not audit, uevents or netfilter.
            rule(&[equals(0, AF_NETLINK), (2, SeccompCmpOp::Ne, 0)])?,
        ],
    );
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(EPERM), ARCH)?.try_into()
}

const EPERM: u32 = 1;

/// One comparison of the low 32 bits of an argument.
type Condition = (u8, SeccompCmpOp, u64);

const fn bits(argument: u8, mask: u64) -> Condition {
    (argument, SeccompCmpOp::MaskedEq(mask), mask)
}

const fn equals(argument: u8, value: u64) -> Condition {
    (argument, SeccompCmpOp::Eq, value)
}

fn rule(conditions: &[Condition]) -> Result<SeccompRule, BackendError> {
    conditions
        .iter()
        .map(|(argument, operator, value)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
        })
        .collect::<Result<Vec<_>, _>>()
        .and_then(SeccompRule::new)
}

/// The second filter, written out: seccompiler compares single numbers only, and here a range is needed.
fn absent() -> Vec<sock_filter> {
    // Classic BPF, linux/filter.h and linux/seccomp.h.
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    const NUMBER_OFFSET: u32 = 0;
    const ALLOW: u32 = 0x7fff_0000;
    const ENOSYS: u32 = 0x0005_0000 + 38;
    let hidden: Vec<u32> =
        [libc::SYS_clone3, libc::SYS_openat2].iter().filter_map(|&nr| u32::try_from(nr).ok()).collect();
    let statement = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    let mut program = vec![statement(LOAD_WORD, NUMBER_OFFSET)];
    // Each test jumps to the last instruction; the distance is what remains after it, less the final two.
    let tests = hidden.len() + 1;
    let mut push = |code: u16, k: u32, position: usize| {
        let distance = u8::try_from(tests - position).unwrap_or(u8::MAX);
        program.push(sock_filter { code, jt: distance, jf: 0, k });
    };
    push(JUMP_IF_GREATER, NEWEST_KNOWN, 0);
    for (index, number) in hidden.iter().enumerate() {
        push(JUMP_IF_EQUAL, *number, index + 1);
    }
    program.push(statement(RETURN, ALLOW));
    program.push(statement(RETURN, ENOSYS));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_variants_compile_and_fit_into_a_pipe() {
        for unix_sockets in [true, false] {
            let [refuse, absent] = filters(unix_sockets).unwrap();
            assert!(refuse.len() > 800 && refuse.len() < 60_000, "{}", refuse.len());
            assert_eq!(refuse.len() % 8, 0);
            assert_eq!(absent.len(), 6 * 8);
        }
        assert_ne!(filters(true).unwrap(), filters(false).unwrap());
    }

    /// Runs the second filter as the kernel would.
    fn answer(number: u32) -> u32 {
        let program = absent();
        let mut accumulator = 0;
        let mut at = 0;
        loop {
            let instruction = &program[at];
            at += 1;
            let jump = |taken: bool| usize::from(if taken { instruction.jt } else { instruction.jf });
            match instruction.code {
                0x20 => accumulator = number,
                0x15 => at += jump(accumulator == instruction.k),
                0x25 => at += jump(accumulator > instruction.k),
                0x06 => return instruction.k,
                other => panic!("unknown code {other}"),
            }
        }
    }

    #[test]
    fn unknown_numbers_and_hidden_arguments_do_not_exist() {
        let enosys = 0x0005_0000 + 38;
        for number in [435, 437, 467, 470, 1000, 0x4000_0000, 0x4000_0001, u32::MAX] {
            assert_eq!(answer(number), enosys, "{number}");
        }
        for number in [0, 1, 56, 59, 257, 434, 436, 439, 452, 466] {
            assert_eq!(answer(number), 0x7fff_0000, "{number}");
        }
    }
}
