//! What a sandbox must look like, worked out before anything is started.
//!
//! [`plan`] is a pure function of settings and a [`FsView`]; it makes one decision table. [`Plan::decide`]
//! reads that table, and both back ends ([`crate::sandbox::bwrap`], [`crate::sandbox::seatbelt`]) render it.

use std::path::PathBuf;

/// Names below a writable root that stay read-only by default: what an editor, a shell, git or an agent would
/// execute or be configured by. `.git` itself is governed by [`crate::GitAccess`].
pub const PROTECTED: &[&str] = &[
    ".gitmodules",
    ".gitconfig",
    ".husky",
    ".githooks",
    ".env",
    ".env.*",
    ".envrc",
    ".direnv",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".agents",
    ".cmdgate",
    ".cmdgate.toml",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
    ".devcontainer.json",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".inputrc",
];

/// Secrets that read as empty by default.
pub const SECRETS: &[&str] = &[
    "~/.ssh",
    "~/.aws",
    "~/.azure",
    "~/.gnupg",
    "~/.kube",
    "~/.netrc",
    "~/.npmrc",
    "~/.pypirc",
    "~/.pgpass",
    "~/.my.cnf",
    "~/.git-credentials",
    "~/.config/git/credentials",
    "~/.config/gh",
    "~/.config/hub",
    "~/.config/glab-cli",
    "~/.config/gcloud",
    "~/.config/rclone",
    "~/.config/op",
    "~/.config/sops",
    "~/.config/github-copilot",
    "~/.config/anthropic",
    "~/.docker/config.json",
    "~/.docker/contexts",
    "~/.cargo/credentials",
    "~/.cargo/credentials.toml",
    "~/.gem/credentials",
    "~/.m2/settings-security.xml",
    "~/.terraform.d/credentials.tfrc.json",
    "~/.vault-token",
    "~/.password-store",
    "~/.local/share/keyrings",
    "~/.claude/.credentials.json",
    "~/.claude.json",
    "~/.codex/auth.json",
    "~/.gemini/oauth_creds.json",
    "~/.mozilla",
    "~/.config/google-chrome",
    "~/.config/chromium",
    "~/.config/BraveSoftware",
    "~/.bash_history",
    "~/.zsh_history",
    "~/.python_history",
    "~/.node_repl_history",
    "~/.psql_history",
    "~/Library/Keychains",
    "~/Library/Cookies",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/wireguard",
    "/etc/NetworkManager/system-connections",
    "/etc/kubernetes",
    "/etc/rancher",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/lib/containerd",
];

/// What a path is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Reading it, or learning that it is there.
    Read,
    /// Changing, making, renaming or removing it.
    Write,
}

/// What a plan says to an operation on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// The sandbox lets it through; ordinary permissions still apply.
    Allow,
    /// The sandbox refuses it.
    Deny(Rule),
}

/// Why a plan refuses something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// [`crate::Mode::ReadOnly`]: nothing may be written.
    ReadOnlyMode,
    /// Not below a writable root.
    OutsideWritableRoots,
    /// A protected name, with the path that is protected.
    Protected(PathBuf),
    /// A hidden path.
    Hidden(PathBuf),
    /// Not visible under [`crate::Reads::ProjectAndSystem`].
    NotVisible,
}
