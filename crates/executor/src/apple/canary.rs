//! Showing once that `sandbox-exec` holds, by a command that tries what must not work.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Launch, marked};
use crate::error::{ExecError, Stage};
use crate::output::{Keep, OutputMode};
use crate::plan::Covers;
use crate::sandbox::seatbelt::{self, Confinement, Door, FileRule};
use crate::session::Session;
use crate::supervise::{self, Captures, Control, Output};

/// How long the canary may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Builtins of bash only: whatever else there is on the machine, this works.
const SCRIPT: &str = r#"
echo x >"$1/file" && echo inside
(: >"$2/file") 2>/dev/null && echo hole:write
(: <"$3/file") 2>/dev/null && echo hole:read
(: >"/dev/tcp/127.0.0.1/$4") 2>/dev/null && echo hole:network
"#;

/// Runs the canary the first time, and remembers that it was well.
#[cfg(target_os = "macos")]
pub(crate) async fn ready(session: &Session) -> Result<(), ExecError> {
    static READY: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    READY.get_or_try_init(|| canary(Path::new(seatbelt::PROGRAM), session)).await.copied()
}

/// Runs the canary.
pub(crate) async fn canary(program: &Path, session: &Session) -> Result<(), ExecError> {
    let unavailable = |stage, text: String, remedy: &str| ExecError::SandboxUnavailable {
        stage,
        text,
        remedy: remedy.to_owned(),
    };
    let tried = attempt(program, session).await.map_err(|error| {
        let remedy =
            "sandbox-exec is part of macOS; if it cannot be started, run with danger_full_access by name";
        unavailable(Stage::Start, format!("{}: {error}", program.display()), remedy)
    })?;
    if !tried.marked {
        return Err(unavailable(
            Stage::SetUp,
            tried.message.clone(),
            seatbelt::remedy(tried.code, &tried.message),
        ));
    }
    if tried.said != "inside\n" {
        let text = format!("the canary said {:?} and not \"inside\"", tried.said);
        return Err(unavailable(
            Stage::Canary,
            text,
            "the sandbox of this macOS does not hold: please report it with the version of macOS",
        ));
    }
    Ok(())
}

struct Tried {
    marked: bool,
    said: String,
    message: String,
    code: Option<i32>,
}

async fn attempt(program: &Path, session: &Session) -> io::Result<Tried> {
    let directory = session.subdirectory("canary-")?;
    let place = |name: &str| {
        let path = directory.path().join(name);
        fs::create_dir(&path).map(|()| path)
    };
    let (inside, outside, secret) = (place("inside")?, place("outside")?, place("secret")?);
    fs::write(secret.join("file"), "x")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let rule = |path: &Path, allowed| FileRule {
        covers: Covers::Tree(path.to_owned()),
        read: Some(allowed),
        write: Some(allowed),
        any_case: false,
    };
    let confinement = Confinement {
        read_everything: true,
        rules: vec![rule(&inside, true), rule(&secret, false)],
        writable: vec![inside.clone()],
        pinned: Vec::new(),
        tmp: inside.clone(),
        door: Door::Closed,
    };
    let profile = confinement.profile().map_err(io::Error::other)?;
    let mut command: Vec<OsString> =
        ["/bin/bash", "--noprofile", "--norc", "-c", SCRIPT, "bash"].map(OsString::from).into();
    command.extend([inside.into(), outside.into(), secret.into()]);
    command.push(listener.local_addr()?.port().to_string().into());

    let (out_read, out_write) = io::pipe()?;
    let (err_read, err_write) = io::pipe()?;
    let (marker, marker_end) = io::pipe()?;
    let captures = Arc::new(Captures::new(&OutputMode::default()));
    let output = Output::new(out_read.into(), err_read.into(), captures.clone())?;
    let launch = Launch {
        program: program.to_owned(),
        arguments: profile.arguments(&command),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: "/".into(),
        streams: [marker_end.into(), out_write.into(), err_write.into()],
        resources: Vec::new(),
        mark: format!("canary-{}", directory.path().display()),
    };
    let control = Control { deadline: Some(Instant::now() + LIMIT), cancel: CancellationToken::new() };
    let ended = supervise::leader(launch, output, &control).await?;
    let said = captures.stdout().finish(Keep::Head).head;
    let message = captures.stderr().finish(Keep::Head).head.trim().to_owned();
    Ok(Tried { marked: marked(marker), said, message, code: ended.status.and_then(|status| status.code()) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    async fn with_fake(body: &str) -> Result<(), ExecError> {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("sandbox-exec");
        fs::write(&program, format!("#!/bin/bash\n{body}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        canary(&program, &Session::create().unwrap()).await
    }

    fn stage(result: Result<(), ExecError>) -> Option<(Stage, String)> {
        match result {
            Err(ExecError::SandboxUnavailable { stage, text, .. }) => Some((stage, text)),
            Err(other) => panic!("{other}"),
            Ok(()) => None,
        }
    }

    const COMMAND: &str = "while [ \"$1\" != -- ]; do shift; done; shift";

    // contract: S25
    #[tokio::test]
    async fn a_sandbox_that_confines_nothing_is_found_out() {
        let (stage, text) = stage(with_fake(&format!("{COMMAND}; exec \"$@\"")).await).unwrap();
        assert_eq!(stage, Stage::Canary);
        for hole in ["hole:write", "hole:read", "hole:network"] {
            assert!(text.contains(hole), "{text}");
        }
    }

    // contract: S25
    #[tokio::test]
    async fn a_sandbox_that_cannot_be_applied_is_told_from_one_that_is_missing() {
        let nested = "echo 'sandbox-exec: sandbox_apply: Operation not permitted' >&2; exit 71";
        let (stage_found, text) = stage(with_fake(nested).await).unwrap();
        assert_eq!(stage_found, Stage::SetUp);
        assert!(text.contains("sandbox_apply"), "{text}");
        let missing = canary(Path::new("/nonexistent/sandbox-exec"), &Session::create().unwrap()).await;
        assert_eq!(stage(missing).unwrap().0, Stage::Start);
    }

    /// bubblewrap stands in for the kernel of a Mac: what the canary asks for, a sandbox that holds gives.
    // contract: S25
    #[tokio::test]
    async fn a_sandbox_that_holds_passes() {
        let fake = format!(
            "{COMMAND}
            inside=\"${{11}}\" secret=\"${{13}}\"
            exec bwrap --unshare-net --ro-bind / / --dev /dev --bind \"$inside\" \"$inside\" --tmpfs \"$secret\" -- \"$@\""
        );
        assert_eq!(stage(with_fake(&fake).await), None);
    }
}
