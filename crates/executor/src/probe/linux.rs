//! What a Linux machine can enforce.

use std::path::Path;

use super::{Check, CheckStatus, Report};
use crate::bounds::{Bounds, Situation};
use crate::cgroup::{Leaf, Wanted};
use crate::error::ExecError;
use crate::executor::Core;
use crate::find;
use crate::limits::Limits;
use crate::preflight::{self, Question, kept};
use crate::sandbox::remedy::{self, Facts};
use crate::sandbox::{Rung, seccomp};

/// Looks at everything. The canary is run again, whatever was remembered.
pub(crate) async fn report(core: &Core, floor: Rung) -> Report {
    let mut checks = Vec::new();
    let mut add = |name, status, detail: String, remedy: Option<String>| {
        checks.push(Check { name, status, detail, remedy });
    };
    let found =
        find::bwrap(core.bwrap.as_deref(), &crate::run::search_path(), std::slice::from_ref(&core.root));
    let path = found.as_ref().map_or(Path::new("/usr/bin/bwrap"), |binary| &binary.path);
    let facts = Facts::gather(path);

    match &found {
        Ok(binary) if binary.set_id => add(
            "bwrap",
            CheckStatus::Warning,
            format!("{} is set-user-id: the rung `full` cannot be reached", binary.path.display()),
            Some("use a bubblewrap that is not set-user-id, and allow user namespaces".to_owned()),
        ),
        Ok(binary) => add("bwrap", CheckStatus::Ok, binary.path.display().to_string(), None),
        Err(problem) => add("bwrap", CheckStatus::Failed, problem.clone(), Some(remedy::install(&facts))),
    }
    let bash = super::bash();
    add(bash.name, bash.status, bash.detail, bash.remedy);
    let restricted = [
        (facts.apparmor_restricts, "AppArmor restricts unprivileged user namespaces"),
        (facts.userns_clone_off, "kernel.unprivileged_userns_clone is 0"),
        (facts.max_user_namespaces_zero, "user.max_user_namespaces is 0"),
        (facts.wsl1, "this is WSL 1"),
    ];
    let said: Vec<&str> = restricted.iter().filter(|(holds, _)| *holds).map(|&(_, text)| text).collect();
    if said.is_empty() {
        let place = if facts.container { "not restricted (in a container)" } else { "not restricted" };
        add("user_namespaces", CheckStatus::Ok, place.to_owned(), None);
    } else {
        let mend = remedy::set_up("No permissions to create new namespace", &facts);
        add("user_namespaces", CheckStatus::Warning, said.join("; "), Some(mend));
    }
    match seccomp::filters(true).and(seccomp::filters(false)) {
        Ok(_) => add("seccomp", CheckStatus::Ok, "both system call filters compile".to_owned(), None),
        Err(problem) => add("seccomp", CheckStatus::Failed, problem, None),
    }

    let mut rung = None;
    if let Ok(binary) = &found {
        let ready = match core.session() {
            Ok(session) => {
                let kept = kept::usable(core.kept.as_deref(), std::slice::from_ref(&core.root));
                let question = Question { binary, floor, session: &session, homes: &core.homes, kept };
                preflight::anew(question).await
            }
            Err(error) => Err(error),
        };
        match ready {
            Ok(ready) => {
                rung = Some(ready.features.rung);
                let status =
                    if ready.features.rung == Rung::Full { CheckStatus::Ok } else { CheckStatus::Warning };
                let detail = format!(
                    "holds on the rung `{}` with bubblewrap {}",
                    ready.features.rung.name(),
                    ready.version
                );
                let mend = (status == CheckStatus::Warning).then(|| {
                    "bubblewrap 0.8 or later that is not set-user-id, and a writable /proc/sys, give the rung `full`".to_owned()
                });
                add("canary", status, detail, mend);
            }
            Err(ExecError::SandboxUnavailable { stage, text, remedy }) => {
                add(
                    "canary",
                    CheckStatus::Failed,
                    format!("failed at stage {}: {text}", stage.name()),
                    Some(remedy),
                );
            }
            Err(error) => add("canary", CheckStatus::Failed, error.to_string(), None),
        }
    }

    let sandboxed = Situation { root: facts.root, sandboxed: true, sized_mounts: true };
    let bounds =
        Bounds::prepare(&Limits { memory: Some(1 << 30), group: true, ..Limits::default() }, sandboxed);
    let unenforced = bounds.unenforced().map(|(name, reason)| format!("{name}: {reason}"));
    drop(bounds);
    let group =
        "run under systemd with a delegated control group (`systemd-run --user --scope -p Delegate=yes …`)";
    match unenforced {
        None => add("limits", CheckStatus::Ok, "processes and memory can be bounded".to_owned(), None),
        Some(what) => add("limits", CheckStatus::Warning, what, Some(group.to_owned())),
    }
    let (leaf, _) = Leaf::create(Wanted { kill: true, ..Wanted::default() });
    if leaf.kills() {
        add("kill_unsandboxed", CheckStatus::Ok, "a control group ends everything at once".to_owned(), None);
    } else {
        let detail = "without a sandbox, what a command leaves behind is searched for and killed one by one"
            .to_owned();
        add("kill_unsandboxed", CheckStatus::Warning, detail, Some(group.to_owned()));
    }
    Report { checks, rung }
}
