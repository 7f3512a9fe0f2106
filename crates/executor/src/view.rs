//! The facts about the file system that a plan needs, behind a trait so that planning stays pure.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// What lies at a path, symlinks not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing, or nothing that can be seen.
    Missing,
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A socket.
    Socket,
    /// A fifo or a device.
    Other,
}

impl From<fs::FileType> for Kind {
    fn from(kind: fs::FileType) -> Self {
        if kind.is_dir() {
            Self::Directory
        } else if kind.is_file() {
            Self::File
        } else if kind.is_symlink() {
            Self::Symlink
        } else if kind.is_socket() {
            Self::Socket
        } else {
            Self::Other
        }
    }
}

/// The unix sockets that are bound to a path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sockets {
    /// Those whose place is known.
    pub paths: Vec<PathBuf>,
    /// How many were bound by a relative name that could not be traced to a place.
    pub unresolved: usize,
}

/// The facts about the file system that a plan needs.
pub trait FsView {
    /// What lies at a path, symlinks not followed.
    fn kind(&self, path: &Path) -> Kind;
    /// The path with every symlink resolved; `None` when something is missing.
    fn real(&self, path: &Path) -> Option<PathBuf>;
    /// The names in a directory, sorted; empty when it cannot be read.
    fn entries(&self, directory: &Path) -> Vec<(OsString, Kind)>;
    /// A small text file (at most 4 KiB of it).
    fn text(&self, path: &Path) -> Option<Vec<u8>>;
    /// The unix sockets that are bound to a path.
    fn sockets(&self) -> Sockets;
}

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostView;

impl FsView for HostView {
    fn kind(&self, path: &Path) -> Kind {
        fs::symlink_metadata(path).map_or(Kind::Missing, |metadata| metadata.file_type().into())
    }

    fn real(&self, path: &Path) -> Option<PathBuf> {
        // Most of what a plan asks for is missing, and one look is cheaper than following the whole path.
        fs::symlink_metadata(path).ok()?;
        fs::canonicalize(path).ok()
    }

    fn entries(&self, directory: &Path) -> Vec<(OsString, Kind)> {
        let Ok(listing) = fs::read_dir(directory) else { return Vec::new() };
        let mut entries: Vec<(OsString, Kind)> = listing
            .filter_map(Result::ok)
            .map(|entry| {
                let kind = entry.file_type().map_or(Kind::Missing, Kind::from);
                (entry.file_name(), kind)
            })
            .collect();
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        entries
    }

    fn text(&self, path: &Path) -> Option<Vec<u8>> {
        if self.kind(path) != Kind::File {
            return None;
        }
        let mut bytes = Vec::new();
        fs::File::open(path).ok()?.take(4096).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn sockets(&self) -> Sockets {
        let Ok(table) = fs::read("/proc/net/unix") else { return Sockets::default() };
        let mut sockets = Sockets::default();
        let mut relative = Vec::new();
        for entry in parse_sockets(&table) {
            if entry.name.is_absolute() {
                sockets.paths.push(entry.name);
            } else {
                relative.push(entry);
            }
        }
        if !relative.is_empty() {
            sockets.unresolved = resolve_relative(&relative, &mut sockets.paths);
        }
        sockets.paths.sort();
        sockets.paths.dedup();
        sockets
    }
}

struct BoundSocket {
    inode: Vec<u8>,
    name: PathBuf,
}

/// Reads the table of unix sockets (proc(5): the inode is the seventh column, the rest of the line the name;
/// `@` marks an abstract one).
fn parse_sockets(table: &[u8]) -> Vec<BoundSocket> {
    let mut found = Vec::new();
    for line in table.split(|&byte| byte == b'\n').skip(1) {
        let mut rest = line;
        let mut inode: &[u8] = &[];
        for _ in 0..7 {
            rest = rest.trim_ascii_start();
            let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
            let (column, tail) = rest.split_at(end);
            inode = column;
            rest = tail;
        }
        let Some(name) = rest.strip_prefix(b" ") else { continue };
        if name.is_empty() || name.starts_with(b"@") {
            continue;
        }
        found.push(BoundSocket {
            inode: inode.to_vec(),
            name: PathBuf::from(OsString::from_vec(name.to_vec())),
        });
    }
    found
}

/// A relative name is relative to the directory its owner stood in. Looks the owners up and adds what is
/// really a socket there; returns how many names stayed without a place.
fn resolve_relative(sockets: &[BoundSocket], paths: &mut Vec<PathBuf>) -> usize {
    let mut placed = vec![false; sockets.len()];
    let Ok(processes) = fs::read_dir("/proc") else { return sockets.len() };
    for process in processes.filter_map(Result::ok) {
        if !process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let Ok(descriptors) = fs::read_dir(process.path().join("fd")) else { continue };
        for descriptor in descriptors.filter_map(Result::ok) {
            let Ok(link) = fs::read_link(descriptor.path()) else { continue };
            let link = link.into_os_string().into_vec();
            let Some(inode) = link.strip_prefix(b"socket:[").and_then(|rest| rest.strip_suffix(b"]")) else {
                continue;
            };
            for (socket, placed) in sockets.iter().zip(placed.iter_mut()) {
                if socket.inode != inode {
                    continue;
                }
                let Ok(directory) = fs::read_link(process.path().join("cwd")) else { continue };
                let path = directory.join(&socket.name);
                if HostView.kind(&path) == Kind::Socket {
                    paths.push(path);
                    *placed = true;
                }
            }
        }
    }
    placed.iter().filter(|&&placed| !placed).count()
}

#[cfg(test)]
pub(crate) mod fake {
    use std::collections::BTreeMap;

    use super::{FsView, Kind, OsString, Path, PathBuf, Sockets};

    /// A file system in a map, for tests of planning.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct FakeView {
        files: BTreeMap<PathBuf, Node>,
        pub(crate) sockets: Sockets,
    }

    #[derive(Debug, Clone)]
    enum Node {
        File(Vec<u8>),
        Directory,
        Link(PathBuf),
        Socket,
    }

    impl FakeView {
        /// `path/` is a directory, `path -> target` a symlink, `path=` a socket, anything else an empty file.
        pub(crate) fn new(entries: &[&str]) -> Self {
            let mut view = Self::default();
            view.files.insert(PathBuf::from("/"), Node::Directory);
            for entry in entries {
                if let Some((path, target)) = entry.split_once(" -> ") {
                    view.insert(path, Node::Link(PathBuf::from(target)));
                } else if let Some(path) = entry.strip_suffix('/') {
                    view.insert(path, Node::Directory);
                } else if let Some(path) = entry.strip_suffix('=') {
                    view.insert(path, Node::Socket);
                    view.sockets.paths.push(PathBuf::from(path));
                } else {
                    view.insert(entry, Node::File(Vec::new()));
                }
            }
            view
        }

        pub(crate) fn with_text(mut self, path: &str, text: &str) -> Self {
            self.insert(path, Node::File(text.as_bytes().to_vec()));
            self
        }

        fn insert(&mut self, path: &str, node: Node) {
            let path = PathBuf::from(path);
            for ancestor in path.ancestors().skip(1) {
                self.files.entry(ancestor.to_owned()).or_insert(Node::Directory);
            }
            self.files.insert(path, node);
        }
    }

    impl FsView for FakeView {
        fn kind(&self, path: &Path) -> Kind {
            let Some(parent) = path.parent().and_then(|parent| self.real(parent)) else {
                return if path == Path::new("/") { Kind::Directory } else { Kind::Missing };
            };
            let path = path.file_name().map_or(parent.clone(), |name| parent.join(name));
            match self.files.get(&path) {
                None => Kind::Missing,
                Some(Node::File(_)) => Kind::File,
                Some(Node::Directory) => Kind::Directory,
                Some(Node::Link(_)) => Kind::Symlink,
                Some(Node::Socket) => Kind::Socket,
            }
        }

        fn real(&self, path: &Path) -> Option<PathBuf> {
            let mut real = PathBuf::from("/");
            for component in path.components().skip(1) {
                real.push(component);
                if component.as_os_str() == ".." {
                    real.pop();
                    real.pop();
                }
                for _ in 0..8 {
                    let Some(Node::Link(target)) = self.files.get(&real) else { break };
                    let base = real.parent().unwrap_or(Path::new("/")).to_owned();
                    real = self.real(&base.join(target))?;
                }
                if !self.files.contains_key(&real) {
                    return None;
                }
            }
            Some(real)
        }

        fn entries(&self, directory: &Path) -> Vec<(OsString, Kind)> {
            let Some(directory) = self.real(directory) else { return Vec::new() };
            self.files
                .keys()
                .filter(|path| path.parent() == Some(&directory))
                .filter_map(|path| Some((path.file_name()?.to_owned(), self.kind(path))))
                .collect()
        }

        fn text(&self, path: &Path) -> Option<Vec<u8>> {
            match self.files.get(&self.real(path)?) {
                Some(Node::File(text)) => Some(text.clone()),
                Some(Node::Directory | Node::Link(_) | Node::Socket) | None => None,
            }
        }

        fn sockets(&self) -> Sockets {
            self.sockets.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_unix_sockets_is_read_by_column() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 20914 /run/a b.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 20915 @abstract\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 20916\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 20917 w.sock\n";
        let found: Vec<(Vec<u8>, PathBuf)> =
            parse_sockets(table).into_iter().map(|socket| (socket.inode, socket.name)).collect();
        assert_eq!(
            found,
            [
                (b"20914".to_vec(), PathBuf::from("/run/a b.sock")),
                (b"20917".to_vec(), PathBuf::from("w.sock")),
            ]
        );
    }

    #[test]
    fn a_socket_bound_by_a_relative_name_is_traced_to_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("own.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(HostView.sockets().paths.contains(&path), "{:?}", HostView.sockets());
    }
}
