//! Which folder is the project: the one that was named on the command line, else the client's root, else the working
//! directory.

#![expect(deprecated, reason = "revision 2026-07-28 deprecates roots; the clients of today have them")]

use super::tell::tell;
use rmcp::model::{InputRequest, ListRootsRequest, ListRootsResult, Root};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the client may take to say its roots.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why a folder cannot be the project.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RootError {
    #[error(
        "the client's root {0:?} is not a file URI such as file:///home/me/project; start the server with --root DIR"
    )]
    NotAFile(String),
    #[error("the client's root {0:?} is on another host; start the server with --root DIR")]
    OtherHost(String),
    #[error("the {of} is /, and the whole file system is no project; start the server with --root DIR")]
    Everything { of: &'static str },
    #[error("the {of} {path} cannot be the project: {why}; start the server with --root DIR")]
    Unusable { of: &'static str, path: String, why: String },
    #[error("the client declares roots and did not name them: {0}; start the server with --root DIR")]
    Unnamed(String),
}

/// Asks the client for its roots (revisions up to 2025-11-25), and gives the project among them.
pub(super) async fn asked(context: &RequestContext<RoleServer>) -> Result<Option<PathBuf>, RootError> {
    match tokio::time::timeout(TIMEOUT, context.peer.list_roots()).await {
        Ok(Ok(listed)) => project_of(&listed.roots),
        Ok(Err(error)) => Err(RootError::Unnamed(error.to_string())),
        Err(_) => Err(RootError::Unnamed(format!("no answer within {} seconds", TIMEOUT.as_secs()))),
    }
}

/// What makes a client say its roots and call again (2026-07-28).
pub(super) fn question() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

/// The project in the client's answer to [`question`].
pub(super) fn answered(answer: &Value) -> Result<Option<PathBuf>, RootError> {
    let listed: ListRootsResult =
        serde_json::from_value(answer.clone()).map_err(|error| RootError::Unnamed(error.to_string()))?;
    project_of(&listed.roots)
}

/// The project among the client's roots: the first. `None` when it has none.
fn project_of(roots: &[Root]) -> Result<Option<PathBuf>, RootError> {
    let Some(first) = roots.first() else { return Ok(None) };
    if roots.len() > 1 {
        tell(&format!("of the client's {} roots, the first is the project: {}", roots.len(), first.uri));
    }
    usable("client's root", &path_of(&first.uri)?).map(Some)
}

/// The real path of a folder, if it can be a project.
pub(super) fn usable(of: &'static str, path: &Path) -> Result<PathBuf, RootError> {
    let unusable = |why: String| RootError::Unusable { of, path: path.display().to_string(), why };
    let real = std::fs::canonicalize(path).map_err(|error| unusable(error.to_string()))?;
    if real.parent().is_none() {
        return Err(RootError::Everything { of });
    }
    if real.is_dir() { Ok(real) } else { Err(unusable("it is not a directory".to_owned())) }
}

/// The path that a file URI names (RFC 8089): `file:///path`, `file://localhost/path` or `file:/path`.
fn path_of(uri: &str) -> Result<PathBuf, RootError> {
    let no_file = || RootError::NotAFile(uri.chars().take(200).collect());
    let (scheme, rest) = uri.split_once(':').ok_or_else(no_file)?;
    if !scheme.eq_ignore_ascii_case("file") || rest.contains(['?', '#']) {
        return Err(no_file());
    }
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(rest) => {
            let (host, _) = rest.split_once('/').ok_or_else(no_file)?;
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return Err(RootError::OtherHost(uri.chars().take(200).collect()));
            }
            rest.get(host.len()..).unwrap_or_default()
        }
    };
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(path).collect();
    let path = PathBuf::from(OsStr::from_bytes(&bytes));
    if path.is_absolute() && !bytes.contains(&0) { Ok(path) } else { Err(no_file()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_uris_name_paths() {
        for (uri, path) in [
            ("file:///home/me/project", "/home/me/project"),
            ("file:///home/me/a%20b%3F%23%25", "/home/me/a b?#%"),
            ("FILE://localhost/srv", "/srv"),
            ("file:/srv/x", "/srv/x"),
            ("file:///", "/"),
        ] {
            assert_eq!(path_of(uri), Ok(PathBuf::from(path)), "{uri}");
        }
        for uri in [
            "",
            "/home/me",
            "https://example.com/x",
            "file:",
            "file:relative",
            "file://",
            "file:///a?b",
            "file:///a#b",
            "file:///a%00b",
            "vscode-remote://file/x",
        ] {
            assert!(matches!(path_of(uri), Err(RootError::NotAFile(_))), "{uri}");
        }
        assert!(matches!(path_of("file://server/share"), Err(RootError::OtherHost(_))));
    }

    #[test]
    fn the_whole_file_system_is_no_project() {
        for uri in ["file:///", "file:///.", "file:///tmp/.."] {
            let refused = project_of(&[Root::new(uri)]);
            assert!(matches!(refused, Err(RootError::Everything { .. })), "{uri}: {refused:?}");
        }
        assert!(matches!(project_of(&[Root::new("file:///not/there")]), Err(RootError::Unusable { .. })));
        assert!(matches!(project_of(&[Root::new("file:///etc/passwd")]), Err(RootError::Unusable { .. })));
        assert_eq!(project_of(&[]), Ok(None));
    }
}
