//! Watching a command that leads a session of its own, as on macOS.

use std::io;

use super::{Control, End, Ended, KILL_GRACE, Output};
use crate::apple::{self, Launch};

/// Runs a command to its end, and then ends whatever of it can be found.
pub(crate) async fn leader(launch: Launch, mut output: Output, control: &Control) -> io::Result<Ended> {
    let mut tree = apple::start(launch)?;
    let mut status = None;
    let end = {
        let stop = control.stop();
        let ended = tree.wait();
        tokio::pin!(stop, ended);
        loop {
            tokio::select! {
                biased;
                end = &mut stop => break end,
                waited = &mut ended => {
                    status = Some(waited?);
                    break End::Exited;
                }
                () = output.turn(), if output.open() => {}
            }
        }
    };
    let killed = output.while_awaiting(tree.end(), KILL_GRACE).await;
    let kill_incomplete = !matches!(killed, Some(Ok(true)));
    if status.is_none() && !kill_incomplete {
        status = output.while_awaiting(tree.wait(), KILL_GRACE).await.transpose()?;
    }
    output.drain().await;
    Ok(Ended {
        end,
        status,
        #[cfg(target_os = "linux")]
        reported: None,
        kill_incomplete,
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::output::{Keep, OutputMode};
    use crate::supervise::Captures;

    async fn run(script: &str, limit: Duration, cancel: CancellationToken) -> (Ended, String) {
        let (out_read, out_write) = std::io::pipe().unwrap();
        let (err_read, err_write) = std::io::pipe().unwrap();
        let captures = Arc::new(Captures::new(&OutputMode::default()));
        let output = Output::new(out_read.into(), err_read.into(), captures.clone()).unwrap();
        let launch = Launch {
            program: "/bin/bash".into(),
            arguments: ["-c", script].map(OsString::from).into(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            directory: "/".into(),
            streams: [
                OwnedFd::from(std::fs::File::open("/dev/null").unwrap()),
                out_write.into(),
                err_write.into(),
            ],
            resources: Vec::new(),
            mark: format!("supervise-{}-{:p}", std::process::id(), Arc::as_ptr(&captures)),
        };
        let control = Control { deadline: Some(Instant::now() + limit), cancel };
        let ended = leader(launch, output, &control).await.unwrap();
        let text = captures.stdout().finish(Keep::Head).head;
        (ended, text)
    }

    const LONG: Duration = Duration::from_secs(30);

    // contract: S23
    #[tokio::test]
    async fn it_ends_by_itself_with_its_code_and_output() {
        let (ended, text) = run("echo out; exit 3", LONG, CancellationToken::new()).await;
        assert_eq!(
            (ended.end, ended.status.unwrap().code(), ended.kill_incomplete),
            (End::Exited, Some(3), false)
        );
        assert_eq!(text, "out\n");
    }

    // contract: S23, S28
    #[tokio::test]
    async fn it_is_ended_with_all_it_started_when_the_time_is_up() {
        let script = "trap '' TERM HUP INT; (setsid sleep 4444 &); sleep 4444 & echo begun; sleep 4444";
        let (ended, text) = run(script, Duration::from_millis(700), CancellationToken::new()).await;
        assert_eq!((ended.end, ended.kill_incomplete, text.as_str()), (End::TimedOut, false, "begun\n"));
    }

    // contract: S23
    #[tokio::test]
    async fn it_is_ended_when_it_is_cancelled() {
        let cancel = CancellationToken::new();
        let stopper = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            stopper.cancel();
        });
        let (ended, _) = run("sleep 4444", LONG, cancel).await;
        assert_eq!((ended.end, ended.kill_incomplete), (End::Cancelled, false));
    }

    // contract: S28
    #[tokio::test]
    async fn a_daemon_that_holds_the_output_open_does_not_outlive_it() {
        let start = std::time::Instant::now();
        let (ended, text) = run("(setsid sleep 4444 &) ; echo done", LONG, CancellationToken::new()).await;
        assert_eq!((ended.end, ended.kill_incomplete, text.as_str()), (End::Exited, false, "done\n"));
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    }
}
