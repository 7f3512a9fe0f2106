//! What to do when a sandbox cannot be had. Pure: the facts about the machine are an argument.
//!
//! The text of bubblewrap's message chooses the advice only. Whether a command ran is never read from text.

/// What is known about the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// `ID` and `ID_LIKE` of os-release(5), in that order.
    pub distribution: Vec<String>,
    /// `kernel.apparmor_restrict_unprivileged_userns` is 1 (Ubuntu 23.10 and later).
    pub apparmor_restricts: bool,
    /// `kernel.unprivileged_userns_clone` is 0 (older Debian, hardened kernels).
    pub userns_clone_off: bool,
    /// `user.max_user_namespaces` is 0.
    pub max_user_namespaces_zero: bool,
    /// Inside a container.
    pub container: bool,
    /// The first Windows Subsystem for Linux, which has no namespaces.
    pub wsl1: bool,
    /// Run by root.
    pub root: bool,
    /// Where bubblewrap was found.
    pub bwrap: String,
}

impl Facts {
    /// Looks at this machine.
    pub(crate) fn gather(bwrap: &std::path::Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let is = |path: &str, value: &str| read(path).trim() == value;
        let kernel = read("/proc/sys/kernel/osrelease");
        Self {
            distribution: distribution(&read("/etc/os-release")),
            apparmor_restricts: is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
            userns_clone_off: is("/proc/sys/kernel/unprivileged_userns_clone", "0"),
            max_user_namespaces_zero: is("/proc/sys/user/max_user_namespaces", "0"),
            container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|path| std::path::Path::new(path).exists())
                || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            // WSL 1 calls itself `-Microsoft`, WSL 2 `-microsoft-standard-WSL2`.
            wsl1: kernel.contains("-Microsoft"),
            root: rustix::process::geteuid().is_root(),
            bwrap: bwrap.display().to_string(),
        }
    }
}

fn distribution(os_release: &str) -> Vec<String> {
    ["ID=", "ID_LIKE="]
        .iter()
        .filter_map(|key| os_release.lines().find_map(|line| line.strip_prefix(key)))
        .flat_map(|value| value.trim_matches('"').split_whitespace().map(str::to_owned))
        .collect()
}

/// How bubblewrap is installed here.
pub(crate) fn install(facts: &Facts) -> String {
    if facts.wsl1 {
        return WSL1.to_owned();
    }
    let sudo = if facts.root { "" } else { "sudo " };
    for name in &facts.distribution {
        let command = match name.as_str() {
            "debian" | "ubuntu" => "apt-get install bubblewrap",
            "fedora" | "rhel" | "centos" => "dnf install bubblewrap",
            "arch" => "pacman -S bubblewrap",
            "alpine" => "apk add bubblewrap",
            "suse" | "opensuse" => "zypper install bubblewrap",
            "nixos" => return "add `pkgs.bubblewrap` to environment.systemPackages, or turn the sandbox off by name \
                               with mode danger_full_access"
                .to_owned(),
            _ => continue,
        };
        return format!(
            "install it with `{sudo}{command}`, or turn the sandbox off by name with mode danger_full_access"
        );
    }
    "install bubblewrap 0.8 or later from your distribution (package `bubblewrap`), or turn the sandbox off by name \
     with mode danger_full_access"
        .to_owned()
}

const WSL1: &str = "WSL 1 has no namespaces: convert the distribution with `wsl --set-version NAME 2`";

/// What to do about a message of bubblewrap.
pub(crate) fn set_up(message: &str, facts: &Facts) -> String {
    let says = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
    if facts.wsl1 {
        return WSL1.to_owned();
    }
    if says(&["Unknown option", "unrecognized option"]) {
        return format!(
            "this bubblewrap is too old; 0.6 or later is needed, 0.8 for everything: {}",
            install(facts)
        );
    }
    let namespaces = says(&[
        "namespace",
        "uid map",
        "gid map",
        "RTM_NEWADDR",
        "RTM_NEWLINK",
        "loopback",
        "Failed to make / slave",
    ]);
    if namespaces && facts.apparmor_restricts {
        return apparmor(facts);
    }
    if facts.userns_clone_off && !facts.root {
        return "allow user namespaces: `sudo sysctl -w kernel.unprivileged_userns_clone=1`, and put the same line \
                into /etc/sysctl.d/"
            .to_owned();
    }
    if facts.max_user_namespaces_zero {
        return "allow user namespaces: `sudo sysctl -w user.max_user_namespaces=15000`, and put the same line into \
                /etc/sysctl.d/"
            .to_owned();
    }
    if says(&["mount proc"]) {
        return "/proc is masked, as in a container: run the container with `--security-opt systempaths=unconfined`, or \
                accept the rung `shared_proc` by name (the command then sees the names of other processes)"
            .to_owned();
    }
    if namespaces && facts.container {
        return "this container forbids user namespaces: run it with `--security-opt seccomp=unconfined --security-opt \
                apparmor=unconfined` (Docker, Podman) or a pod security context that allows them, or turn the sandbox \
                off by name with mode danger_full_access where the container is the sandbox"
            .to_owned();
    }
    if namespaces {
        return "user namespaces seem to be forbidden here: look at user.max_user_namespaces, \
                kernel.unprivileged_userns_clone and the security module's log"
            .to_owned();
    }
    if says(&["find source path", "bind mount", "create file", "mkdir", "No such file or directory"]) {
        return "a path that was to be mounted is missing or changed while the command was being started; try again"
            .to_owned();
    }
    "run `doctor` for what this machine can enforce".to_owned()
}

fn apparmor(facts: &Facts) -> String {
    let sudo = if facts.root { "" } else { "sudo " };
    format!(
        "AppArmor forbids user namespaces to unprivileged programs here; allow them for bubblewrap alone:\n\
         printf '%s\\n' 'abi <abi/4.0>,' 'include <tunables/global>' 'profile bwrap {path} flags=(unconfined) {{' \
         '  userns,' '}}' | {sudo}tee /etc/apparmor.d/bwrap && {sudo}apparmor_parser -r /etc/apparmor.d/bwrap",
        path = facts.bwrap
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(distribution: &[&str]) -> Facts {
        Facts {
            distribution: distribution.iter().map(|&name| name.to_owned()).collect(),
            bwrap: "/usr/bin/bwrap".to_owned(),
            ..Facts::default()
        }
    }

    // contract: S25
    #[test]
    fn every_distribution_gets_its_own_command() {
        let cases: [(&[&str], &str); 7] = [
            (&["debian"], "sudo apt-get install bubblewrap"),
            (&["linuxmint", "ubuntu", "debian"], "sudo apt-get install bubblewrap"),
            (&["fedora"], "sudo dnf install bubblewrap"),
            (&["manjaro", "arch"], "sudo pacman -S bubblewrap"),
            (&["alpine"], "sudo apk add bubblewrap"),
            (&["nixos"], "environment.systemPackages"),
            (&["something"], "package `bubblewrap`"),
        ];
        for (distribution, expected) in cases {
            let advice = install(&on(distribution));
            assert!(advice.contains(expected), "{distribution:?}: {advice}");
            assert!(advice.contains("danger_full_access"), "{advice}");
        }
        let root = Facts { root: true, ..on(&["debian"]) };
        assert!(!install(&root).contains("sudo"));
    }

    #[test]
    fn os_release_is_read_with_and_without_quotes() {
        let text = "NAME=\"Pop\"\nID=pop\nID_LIKE=\"ubuntu debian\"\n";
        assert_eq!(distribution(text), ["pop", "ubuntu", "debian"]);
    }

    // contract: S25
    #[test]
    fn each_known_failure_gets_the_remedy_that_mends_it() {
        let restricted = Facts { apparmor_restricts: true, ..on(&["ubuntu"]) };
        let advice = set_up("bwrap: setting up uid map: Permission denied", &restricted);
        assert!(
            advice.contains("profile bwrap /usr/bin/bwrap flags=(unconfined) {")
                && advice.contains("userns,"),
            "{advice}"
        );
        assert_eq!(
            set_up("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", &restricted),
            advice
        );
        let cases = [
            ("bwrap: Unknown option --add-seccomp-fd", on(&["debian"]), "too old"),
            ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", on(&[]), "shared_proc"),
            (
                "bwrap: No permissions to create new namespace",
                Facts { userns_clone_off: true, ..on(&[]) },
                "unprivileged_userns_clone=1",
            ),
            (
                "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
                Facts { max_user_namespaces_zero: true, ..on(&[]) },
                "max_user_namespaces=15000",
            ),
            (
                "bwrap: No permissions to create new namespace",
                Facts { container: true, ..on(&[]) },
                "seccomp=unconfined",
            ),
            (
                "bwrap: No permissions to create new namespace",
                Facts { wsl1: true, ..on(&[]) },
                "--set-version",
            ),
            ("bwrap: Can't find source path /x: No such file or directory", on(&[]), "try again"),
            ("something else", on(&[]), "doctor"),
        ];
        for (message, facts, expected) in cases {
            let advice = set_up(message, &facts);
            assert!(advice.contains(expected), "{message}: {advice}");
        }
    }
}
