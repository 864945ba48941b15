//! The examples, compiled as users compile them, with every warning an error, and run: as they are, under valgrind, and with
//! AddressSanitizer. `install.sh` installs what they are compiled against.

use crate::built::{crate_folder, has, libraries, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library, installed below a folder.
struct Installed {
    prefix: tempfile::TempDir,
}

impl Installed {
    fn new() -> Self {
        let prefix = tempfile::tempdir().unwrap();
        let mut install = Command::new(crate_folder().join("install.sh"));
        run(install.arg("--prefix").arg(prefix.path()).arg("--built").arg(libraries()));
        Self { prefix }
    }

    fn library(&self) -> PathBuf {
        self.prefix.path().join("lib")
    }

    /// What pkg-config says a compiler needs.
    fn flags(&self, of_static: bool) -> Vec<String> {
        let mut ask = Command::new("pkg-config");
        ask.env("PKG_CONFIG_PATH", self.library().join("pkgconfig")).args(["--cflags", "--libs"]);
        run(ask.args(of_static.then_some("--static")).arg("segstream")).split_whitespace().map(str::to_owned).collect()
    }

    /// Compiles an example; returns the program.
    fn compile(&self, example: &Path, more: &[&str]) -> PathBuf {
        let name = format!("{}{}", example.file_stem().unwrap().to_str().unwrap(), more.concat().replace(['=', '/', '-'], "_"));
        let program = self.prefix.path().join(name);
        let cpp = example.extension().is_some_and(|extension| extension == "cpp");
        let mut compile = Command::new(if cpp { "g++" } else { "gcc" });
        compile.args([if cpp { "-std=c++17" } else { "-std=c11" }, "-D_POSIX_C_SOURCE=200809L"]);
        compile.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-pthread"]).args(more);
        compile.arg(example).args(self.flags(more.contains(&"-static-libgcc"))).arg("-o").arg(&program);
        run(&mut compile);
        program
    }

    /// A command with the path of the shared library.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.library());
        command
    }
}

fn examples() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(crate_folder().join("examples")).unwrap();
    let mut found: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "c" || extension == "cpp"));
    found.sort();
    assert!(found.len() >= 4);
    found
}

fn has_compilers() -> bool {
    ["gcc", "g++", "pkg-config"].iter().all(|program| has(program))
}

#[test]
fn every_example_compiles_without_a_warning_and_does_what_it_says() {
    if !has_compilers() {
        return;
    }
    let installed = Installed::new();
    for example in examples() {
        run(&mut installed.command(installed.compile(&example, &[])));
    }
}

#[test]
fn a_program_can_link_the_static_library() {
    if !has_compilers() {
        return;
    }
    let installed = Installed::new();
    for library in ["libsegstream.so", "libsegstream.so.0.1", "libsegstream.so.0.1.0"] {
        std::fs::remove_file(installed.library().join(library)).unwrap();
    }
    run(&mut Command::new(installed.compile(&examples()[0], &["-static-libgcc"])));
}

#[test]
fn valgrind_has_nothing_to_report_of_any_example() {
    if !has_compilers() || !has("valgrind") {
        return;
    }
    let installed = Installed::new();
    for example in examples() {
        let program = installed.compile(&example, &[]);
        let mut valgrind = installed.command("valgrind");
        valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=definite,indirect"]);
        valgrind.arg(format!("--suppressions={}", crate_folder().join("valgrind.supp").display()));
        run(valgrind.args(["--errors-for-leak-kinds=definite,indirect", "--fair-sched=yes"]).arg(program));
    }
}

#[test]
fn address_sanitizer_has_nothing_to_report_of_any_example() {
    if !has_compilers() {
        return;
    }
    let installed = Installed::new();
    for example in examples() {
        let program = installed.compile(&example, &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
        run(installed.command(program).env("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1"));
    }
}
