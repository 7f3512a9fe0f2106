//! Programs that work on the names of files: `basename`, `dirname`, `realpath`, `readlink`, `pathchk`

use crate::spec::{CommandSpec, Operands, Role, Syntax, follows_links, inert, reads};

/// Its operands are only text.
pub(super) static BASENAME: CommandSpec = CommandSpec {
    names: &["basename"],
    about: "prints the last part of names",
    checked: "GNU coreutils 9.1",
    syntax: Syntax::STOPS,
    flags: &[
        inert(&["-a", "--multiple"]),
        inert(&["-s", "--suffix"]).takes_text(),
        inert(&["-z", "--zero"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::NAMES,
    ..CommandSpec::JUDGED
};

/// Its operands are only text.
pub(super) static DIRNAME: CommandSpec = CommandSpec {
    names: &["dirname"],
    about: "prints names without their last part",
    checked: "GNU coreutils 9.1",
    flags: &[inert(&["-z", "--zero"]), inert(&["--help"]).ends(), inert(&["--version"]).ends()],
    operands: Operands::NAMES,
    ..CommandSpec::JUDGED
};

/// It follows the symlinks of its operands, and nothing else: they must resolve inside the project like those of
/// every other reader, so what it prints lies inside as well.
pub(super) static REALPATH: CommandSpec = CommandSpec {
    names: &["realpath"],
    about: "prints where names lead",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-e", "--canonicalize-existing"]),
        inert(&["-m", "--canonicalize-missing"]),
        inert(&["-L", "--logical"]),
        inert(&["-P", "--physical"]),
        inert(&["-q", "--quiet"]),
        reads(&["--relative-to"], "looks at the directory"),
        reads(&["--relative-base"], "looks at the directory"),
        inert(&["-s", "--strip", "--no-symlinks"]),
        inert(&["-z", "--zero"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES_OR_HERE,
    ..CommandSpec::JUDGED
};

/// Without `-f` it prints what a symlink holds, which a listing shows as well.
pub(super) static READLINK: CommandSpec = CommandSpec {
    names: &["readlink"],
    about: "prints what symlinks hold",
    checked: "GNU coreutils 9.1",
    flags: &[
        follows_links(&["-f", "--canonicalize"], "follows every symlink in the name"),
        follows_links(&["-e", "--canonicalize-existing"], "follows every symlink in the name"),
        follows_links(&["-m", "--canonicalize-missing"], "follows every symlink in the name"),
        inert(&["-n", "--no-newline"]),
        inert(&["-q", "--quiet"]),
        inert(&["-s", "--silent"]),
        inert(&["-v", "--verbose"]),
        inert(&["-z", "--zero"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::FILES_OR_HERE,
    ..CommandSpec::JUDGED
};

/// It looks whether the directories in a name can be searched.
pub(super) static PATHCHK: CommandSpec = CommandSpec {
    names: &["pathchk"],
    about: "checks whether names are valid",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-p"]),
        inert(&["-P"]),
        inert(&["--portability"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::all(Role::ReadPath),
    ..CommandSpec::JUDGED
};
