//! Programs and builtins that are known and never safe, each with its reason.
//!
//! A name that is missing here and in the tables is held back as well; a row only lets the answer say why.

use crate::spec::CommandSpec;

macro_rules! refused {
    ($($why:literal: $($name:literal)+;)+) => {
        /// One table a name.
        pub(super) static SPECS: [CommandSpec; [$($($name),+),+].len()] =
            [$($(CommandSpec::refused(&[$name], $why)),+),+];
    };
}

refused! {
    // ---- files -----------------------------------------------------------------------------------------------------
    "creates files, or changes their times": "touch" "truncate" "fallocate" "mktemp" "tempfile" "mkfifo" "mknod";
    "creates directories": "mkdir";
    "removes files": "rm" "unlink" "shred" "rmdir";
    "writes, moves or links files": "cp" "mv" "ln" "link" "install" "dd" "rename" "rsync";
    "changes owners, permissions or attributes": "chmod" "chown" "chgrp" "chattr" "chcon" "setfacl" "setfattr";
    "writes the pieces into files": "split" "csplit";
    "writes a file, or overwrites its second operand": "ptx";
    "compares by running `diff`, and with -o runs an editor": "sdiff";
    "compares by running `diff`": "diff3";
    "writes caches to disk": "sync";
    "edits files": "patch" "ed" "ex" "vi" "vim" "nvim" "nano" "emacs" "red" "rvim" "vimdiff";
    // ---- other users and processes -----------------------------------------------------------------------------------
    "shows who is logged in, or account data":
        "logname" "users" "who" "w" "last" "lastb" "lastlog" "pinky" "finger" "getent" "chage" "lslogins";
    "shows the command lines of other processes, which may hold secrets":
        "ps" "pgrep" "pidof" "pstree" "top" "htop" "btop" "lsof" "fuser" "pmap" "pwdx" "slabtop";
    "prints the environment, which may hold secrets": "env" "printenv";
    "stops or signals processes": "kill" "pkill" "killall" "skill" "renice" "ionice" "taskset" "chrt" "prlimit";
    "reads the log of the system": "dmesg" "journalctl";
    // ---- programs that run other programs ------------------------------------------------------------------------------
    "runs a program detached from its terminal, time limit or session": "nohup" "setsid" "daemon" "disown" "at" "batch";
    "runs a program as another user or in another place":
        "sudo" "su" "doas" "run0" "pkexec" "chroot" "unshare" "nsenter" "runuser" "setpriv" "bwrap" "systemd-run";
    "runs a program whose effects are not judged":
        "strace" "ltrace" "gdb" "script" "watch" "parallel" "entr" "flock" "unbuffer" "expect" "busybox" "toybox";
    "runs a script":
        "bash" "sh" "zsh" "dash" "fish" "ksh" "mksh" "tcsh" "csh" "rbash" "pwsh" "nu" "xonsh" "tclsh" "wish";
    "prints for ever": "yes";
    // ---- archives and documents ------------------------------------------------------------------------------------------
    "is a script that runs decompressors and other programs":
        "zcat" "gzcat" "gunzip" "uncompress" "zgrep" "zegrep" "zfgrep" "zless" "zmore" "zdiff" "zcmp" "znew" "zforce"
        "bzgrep" "bzegrep" "bzfgrep" "bzless" "bzmore" "bzdiff" "bzcmp" "xzgrep" "xzegrep" "xzfgrep" "xzless"
        "xzmore" "xzdiff" "xzcmp" "lzgrep" "lzless" "zstdgrep" "zstdless" "zipgrep";
    "writes archives or the files in them":
        "zip" "zipcloak" "zipnote" "zipsplit" "7z" "7za" "7zr" "rar" "unrar" "cpio" "pax" "bsdtar" "compress" "gzexe"
        "bzip2recover" "lz4" "lzip" "brotli" "pigz" "pbzip2";
    "changes object files": "strip" "objcopy" "ranlib" "patchelf" "elfedit";
    "runs the dynamic linker, and in some versions the file itself": "ldd";
    "formats pages by running several programs, and writes a cache": "man" "mandb";
    "runs `gzip` through a shell": "info";
    "runs a pager that the repository's configuration may name": "delta" "diff-so-fancy" "difft" "tig" "lazygit";
    "runs `diff`, or the program that its configuration names": "colordiff";
    "writes temporary files, and runs `pwd` and unpackers": "cloc";
    "opens files in another program": "xdg-open" "open" "code" "cursor" "subl" "screen";
    // ---- packages ---------------------------------------------------------------------------------------------------------
    "installs packages; even its queries run `dpkg` and write caches": "apt" "apt-get" "apt-cache" "aptitude" "apt-mark";
    "installs packages; even its queries open the database for writing":
        "rpm" "yum" "dnf" "zypper" "pacman" "apk" "brew" "port" "snap" "flatpak" "nix" "nix-env" "nix-shell";
    "installs packages, and looks for newer versions of itself": "pip" "pip3" "pipx" "pipenv" "poetry" "conda" "mamba";
    "runs a program that the project names, and writes caches": "yarn" "pnpm" "corepack" "bunx" "pnpx";
    "installs packages or runs code of the project": "gem" "bundle" "bundler" "composer" "cpan" "cpanm" "luarocks";
    // ---- building and running ---------------------------------------------------------------------------------------------
    "writes `/tmp/hsperfdata_*` even to show its version":
        "java" "javac" "jar" "javap" "jshell" "keytool" "mvn" "mvnw" "gradle" "gradlew" "ant" "sbt" "lein" "scala"
        "kotlin" "kotlinc" "groovy" "clojure" "clj";
    "runs code of the project, its configuration among it":
        "pytest" "tox" "nox" "pylint" "flake8" "jest" "vitest" "mocha" "webpack" "vite" "rollup" "next" "nuxt"
        "ts-node" "tsx" "nx" "turbo" "lerna" "gulp" "grunt" "karma" "cypress" "playwright" "storybook" "rake" "rspec"
        "rubocop" "rails" "phpunit" "phpstan" "pre-commit" "husky" "stylelint" "biome" "oxlint" "jupyter" "ipython";
    "builds, or runs what was built":
        "ninja" "meson" "scons" "bazel" "bazelisk" "buck" "buck2" "just" "task" "rustup" "clang" "clang++" "clang-format"
        "clang-tidy" "autoconf" "automake" "libtool" "m4" "flex" "bison" "nasm" "lldb" "valgrind"
        "perf" "cross" "wasm-pack" "trunk" "protoc" "buf" "swift" "xcodebuild" "dotnet" "msbuild" "nuget" "zig" "ghc"
        "cabal" "stack" "ocaml" "dune" "opam";
    "interprets a language": "R" "Rscript" "lua" "luajit" "julia" "elixir" "iex" "mix" "erl" "rebar3" "bc" "dc"
        "osascript" "guile" "racket" "sbcl" "octave" "pypy" "pypy3";
    // ---- services -----------------------------------------------------------------------------------------------------------
    "talks to a server or a daemon":
        "kubectl" "helm" "terraform" "tofu" "terragrunt" "pulumi" "aws" "gcloud" "gsutil" "az" "doctl" "heroku" "vercel"
        "netlify" "flyctl" "fly" "wrangler" "firebase" "supabase" "docker-compose" "podman" "nerdctl" "buildah"
        "skopeo" "minikube" "kind" "k9s" "oc" "ansible" "ansible-playbook" "vagrant" "packer" "consul" "vault" "glab"
        "hub" "svn" "hg" "bzr" "fossil";
    "talks to a database server, and runs commands of its own":
        "psql" "pg_dump" "pg_restore" "mysql" "mysqldump" "mariadb" "redis-cli" "mongo" "mongosh" "sqlcmd" "cqlsh"
        "duckdb" "clickhouse" "clickhouse-client";
    "opens keys, and starts an agent that keeps them":
        "gpg" "gpg2" "gpg-agent" "gpgconf" "ssh-agent" "ssh-add" "ssh-keygen" "age" "pass" "op" "security";
    "opens a socket to the kernel or devices": "lsusb" "lspci" "iw" "iwconfig" "ethtool" "nmcli" "ufw" "firewall-cmd";
    // ---- searching -----------------------------------------------------------------------------------------------------
    "starts a shell and git to find the user's ignore file": "ag";
    "takes options from `.ackrc` files of the project and the directories above": "ack" "ack-grep";
    "takes options from a `.ugrep` file of the project, which can name programs to run": "ug" "ug+";
    "has options that run programs, and its table has not been read": "ugrep" "ugrep+";
    "loads shared libraries that `sgconfig.yml` of the project names": "ast-grep";
    "is a shell under another group on most systems, and `ast-grep` on others": "sg" "newgrp";
    "writes an index of the source files": "ctags" "etags" "cscope" "gtags" "global";
    "rebuilds or reads a list of all files of the system": "updatedb" "locate" "mlocate" "plocate";
    // ---- the machine ---------------------------------------------------------------------------------------------------
    "changes settings of the machine or the terminal":
        "stty" "reset" "mount" "umount" "swapon" "swapoff" "sysctl" "systemctl" "service" "crontab" "shutdown" "reboot"
        "halt" "poweroff" "hwclock" "timedatectl" "hostnamectl" "localectl" "loginctl" "modprobe" "insmod" "rmmod"
        "useradd" "userdel" "usermod" "groupadd" "passwd" "chsh" "chfn" "iptables" "nft" "ldconfig" "update-alternatives";
    // ---- the network ---------------------------------------------------------------------------------------------------
    "reaches the network":
        "curl" "wget" "ssh" "scp" "sftp" "nc" "ncat" "netcat" "socat" "telnet" "ftp" "tftp" "nslookup" "dig" "host"
        "ping" "ping6" "traceroute" "tracepath" "mtr" "whois" "openssl" "ssh-keyscan" "ssh-copy-id" "http" "https"
        "aria2c" "lynx" "w3m" "links" "nmap" "arp" "dnsdomainname" "domainname" "ypdomainname" "nisdomainname";
    "shows or changes the machine's network": "ip" "ifconfig" "netstat" "ss" "route" "tcpdump";
    // ---- builtins that run text or files as commands ---------------------------------------------------------------------
    "runs its text as a command": "eval" "exec" "builtin" "coproc";
    "runs a file in this shell": "source" ".";
    "runs its text later, at a signal or at the end": "trap";
    // ---- builtins that set variables or change the shell -------------------------------------------------------------------
    "sets a variable, and may evaluate a subscript as a command":
        "read" "mapfile" "readarray" "let" "getopts" "declare" "typeset" "local" "readonly" "export" "unset" "shift";
    "changes what command words mean": "alias" "unalias" "hash" "enable" "shopt" "complete" "compgen" "compopt";
    "changes limits or masks of the shell": "umask" "ulimit";
    "changes or shows the shell's jobs": "jobs" "fg" "bg" "suspend";
    "changes keys or history of the shell, or shows it": "bind" "history" "fc";
    "changes which of the following commands run, which is not followed":
        "break" "continue" "return" "logout" "caller";
    "changes directory in a way that is not followed": "pushd" "popd" "dirs";
}
