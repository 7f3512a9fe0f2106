//! Running on macOS: `sandbox-exec`, or nothing but a session of its own.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Attempt, Prepared, Watch, extra_roots, mark, outcome, unconfined};
use crate::apple::{self, Launch};
use crate::error::{ExecError, Stage};
use crate::limits::{Holds, LimitStatus};
use crate::outcome::{
    Backend, Enforced, Finished, KillStrength, NetworkEnforced, NotStarted, Outcome, UnixSockets,
};
use crate::output::Keep;
use crate::plan::{Access, Operation, Plan};
use crate::proxy::{self, Serving};
use crate::sandbox::seatbelt::{self, Confinement, Door};
use crate::sandbox::{Mode, Network, PrivateTmp, Rung, bwrap};
use crate::scan::Scan;
use crate::session::Session;
use crate::supervise::{self, Control, End, Ended, Output};

/// Limits that a command sets on itself.
type Resources = Vec<(rustix::process::Resource, u64)>;

impl Prepared {
    /// Refuses what would be refused anyway, before anything is started.
    pub(crate) async fn check(&self) -> Result<(), ExecError> {
        self.proxy()?;
        self.terminal()?;
        if bwrap::confines(self.settings.sandbox.mode) {
            extra_roots(&self.settings)?;
            self.rung()?;
            apple::ready(&*self.core.session()?).await?;
        }
        self.limits(true).map(drop)
    }

    pub(super) async fn run_confined(self, control: &Control) -> Result<Finished, ExecError> {
        self.check().await?;
        let session = self.core.session()?;
        let attempt = self.attempt(&session, control).await?;
        Ok(self.concluded(attempt))
    }

    pub(super) async fn run_unconfined(self, control: &Control) -> Result<Finished, ExecError> {
        self.check().await?;
        let (resources, limits) = self.limits(false)?;
        let enforced = unconfined(KillStrength::BestEffort, limits);
        let words = match self.words(&|path| Some(path.to_owned())) {
            Ok(words) => words,
            Err(reason) => return Ok(self.not_started(reason, enforced)),
        };
        let started = async {
            let (out, err, output) = self.pipes()?;
            let launch = Launch {
                program: words.program,
                arguments: words.argv.into_iter().skip(1).collect(),
                environment: self.environment.clone(),
                directory: self.workdir.clone(),
                streams: [crate::input::open(self.settings.own_input)?, out, err],
                resources,
                mark: mark(),
            };
            supervise::leader(launch, output, control).await
        };
        let ended = started.await;
        Ok(self.ended_unconfined(ended, enforced))
    }

    async fn attempt(&self, session: &Session, control: &Control) -> Result<Attempt, ExecError> {
        let sandbox = &self.settings.sandbox;
        // Nothing can be laid over /tmp here: a directory of this command's own stands for a /tmp in memory.
        let fresh: Option<TempDir> = match sandbox.tmp {
            PrivateTmp::Session => None,
            PrivateTmp::Memory(_) => Some(
                session
                    .subdirectory("tmp-")
                    .map_err(ExecError::io("make a directory for temporary files"))?,
            ),
        };
        let tmp = fresh.as_ref().map_or_else(|| session.tmp(), |directory| directory.path().to_owned());
        let plan = self.planned(&tmp);
        let (resources, limits) = self.limits(true)?;
        let serving = self.serve()?;
        let door = match (&sandbox.network, &serving) {
            (Network::Off, _) | (Network::Domains(_), None) => Door::Closed,
            (Network::On, _) => Door::Open,
            (Network::Domains(_), Some(serving)) => Door::Proxy(serving.address().port()),
        };
        let enforced = enforced(&plan, door, limits);
        let not_started = |reason, enforced, plan| Attempt {
            outcome: Outcome::NotStarted(reason),
            enforced,
            network: Vec::new(),
            denials: Vec::new(),
            scan: None,
            plan,
        };
        let words = match self.words(&|path| seen(&plan, path)) {
            Ok(words) => words,
            Err(reason) => return Ok(not_started(reason, enforced, plan)),
        };
        let profile =
            Confinement::of(&plan, &tmp, door).profile().map_err(|error| ExecError::SandboxUnavailable {
                stage: Stage::SetUp,
                text: error.to_string(),
                remedy: "give the directory a name in UTF-8".to_owned(),
            })?;
        let mut watch = Watch((sandbox.mode == Mode::WorkspaceWrite).then(|| {
            Scan::before(&plan, sandbox.git, sandbox.after_run, sandbox.scan_entries, session.quarantine())
        }));
        let arguments = profile.arguments(&words.argv);
        let environment = self.environment_in(&tmp, serving.as_ref());
        let started = self.start(arguments, environment, resources, control).await;
        let (denials, scan) = watch.end().await;
        let network = serving.map(|serving| serving.decisions()).unwrap_or_default();
        let outcome = match started {
            Ok((ended, true)) => outcome(&ended),
            Ok((ended, false)) if ended.end == End::Exited => {
                let text = self.captures.stderr().snapshot(Keep::Head).head.trim().to_owned();
                let code = ended.status.and_then(|status| status.code());
                let remedy = seatbelt::remedy(code, &text).to_owned();
                Outcome::SandboxFailed { stage: Stage::SetUp, text, remedy }
            }
            Ok((ended, false)) => outcome(&ended),
            Err(error) => Outcome::NotStarted(NotStarted::System { reason: error.to_string() }),
        };
        drop(fresh);
        Ok(Attempt { outcome, enforced, network, denials, scan, plan })
    }

    /// Runs `sandbox-exec` to its end; true when the profile was in force and the command was executed.
    async fn start(
        &self,
        arguments: Vec<std::ffi::OsString>,
        environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
        resources: Resources,
        control: &Control,
    ) -> io::Result<(Ended, bool)> {
        let (out, err, output) = self.pipes()?;
        let (marker, marker_end) = io::pipe()?;
        let launch = Launch {
            program: PathBuf::from(seatbelt::PROGRAM),
            arguments,
            environment,
            directory: self.workdir.clone(),
            streams: [marker_end.into(), out, err],
            resources,
            mark: mark(),
        };
        let ended = supervise::leader(launch, output, control).await?;
        Ok((ended, apple::marked(marker)))
    }

    fn pipes(&self) -> io::Result<(OwnedFd, OwnedFd, Output)> {
        let (out_read, out_write) = io::pipe()?;
        let (err_read, err_write) = io::pipe()?;
        let output = Output::new(out_read.into(), err_read.into(), self.captures.clone())?;
        Ok((out_write.into(), err_write.into(), output))
    }

    /// Starts the proxy of [`Network::Domains`] on a port of this machine's loopback, the only one that the profile
    /// lets the command reach.
    fn serve(&self) -> Result<Option<Serving>, ExecError> {
        let Some(proxy) = self.proxy()? else { return Ok(None) };
        let serving = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| proxy.serve(listener));
        serving.map(Some).map_err(|error| ExecError::SandboxUnavailable {
            stage: Stage::Proxy,
            text: error.to_string(),
            remedy: "free a port on 127.0.0.1".to_owned(),
        })
    }

    /// The command's environment, with the directory for temporary files and the proxy where they really are.
    fn environment_in(
        &self,
        tmp: &Path,
        serving: Option<&Serving>,
    ) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        let mut places = vec![("TMPDIR", tmp.as_os_str().to_owned()), ("TMPPREFIX", tmp.join("zsh").into())];
        if let Some(serving) = serving {
            let proxy = proxy::environment(serving.address());
            places.extend(proxy.into_iter().map(|(name, value)| (name, value.into())));
        }
        let mut environment = self.environment.clone();
        environment.retain(|(name, _)| !places.iter().any(|(known, _)| name == known));
        environment.extend(places.into_iter().map(|(name, value)| (name.into(), value)));
        environment
    }

    fn terminal(&self) -> Result<(), ExecError> {
        if self.settings.terminal.is_none() {
            return Ok(());
        }
        Err(ExecError::SandboxUnavailable {
            stage: Stage::Platform,
            text: "commands cannot be given a terminal on macOS".to_owned(),
            remedy: "run the command without `terminal`".to_owned(),
        })
    }

    /// Without namespaces and system call filters this is never more than [`Rung::Reduced`].
    fn rung(&self) -> Result<(), ExecError> {
        if self.settings.sandbox.lowest_rung <= Rung::Reduced {
            return Ok(());
        }
        Err(ExecError::SandboxUnavailable {
            stage: Stage::Platform,
            text: "macOS reaches the rung `reduced`, and `full` is asked for".to_owned(),
            remedy: "lower `lowest_rung` to `reduced`".to_owned(),
        })
    }

    /// The limits that the command sets on itself, and what is to be said of each.
    fn limits(&self, sandboxed: bool) -> Result<(Resources, Vec<LimitStatus>), ExecError> {
        let (resources, statuses) = apple::limits(&self.settings.limits, sandboxed);
        let unenforced = statuses.iter().find_map(|status| match &status.holds {
            Holds::Unenforced(reason) => Some((status.kind.name(), reason)),
            Holds::ControlGroup | Holds::ResourceLimit | Holds::Mount => None,
        });
        match unenforced {
            Some((name, reason)) if self.settings.limits.required => Err(ExecError::SandboxUnavailable {
                stage: Stage::Limits,
                text: format!("the limit `{name}` cannot be put in force: {reason}"),
                remedy: "accept it by not setting `required`".to_owned(),
            }),
            Some(_) | None => Ok((resources, statuses)),
        }
    }
}

fn seen(plan: &Plan, path: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(path).ok()?;
    (plan.decide(Operation::Read, &real) == Access::Allow).then(|| path.to_owned())
}

fn enforced(plan: &Plan, door: Door, limits: Vec<LimitStatus>) -> Enforced {
    Enforced {
        mode: plan.mode,
        backend: Backend::SandboxExec,
        rung: Some(Rung::Reduced),
        user_namespace: false,
        pid_namespace: false,
        nested_namespaces_disabled: false,
        seccomp: false,
        network: match door {
            Door::Closed => NetworkEnforced::Closed,
            Door::Proxy(_) => NetworkEnforced::ProxyOnly,
            Door::Loopback | Door::Open => NetworkEnforced::Open,
        },
        unix_sockets: UnixSockets::OwnOnly,
        reads: plan.reads,
        kill: KillStrength::BestEffort,
        limits,
    }
}

/// A long shell command is refused: there is no file without a name here, and one with a name could be changed.
pub(super) fn script(_text: &[u8]) -> io::Result<(PathBuf, OwnedFd)> {
    Err(io::Error::other(
        "the command is longer than macOS lets an argument be; write it to a file and run that",
    ))
}

/// Does something once the tree of a dropped run has been ended.
pub(super) fn tidy_later(work: impl FnOnce() + Send + 'static) {
    std::thread::spawn(work);
}
