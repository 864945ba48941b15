//! Builds the ends in the folder `c`, each as a program of its own, where its library is installed.
//!
//! Called by cargo. Where a library is missing the end is left out, and `segstream-peers end --list` says what to install.
//!
//! Invariant: a missing library is no error; an end that has its library and cannot be built is one.

use std::path::PathBuf;
use std::process::Command;

/// An end to build.
struct End {
    /// The variable that tells the program where it is.
    variable: &'static str,
    source: &'static str,
    header: &'static str,
    /// The module of pkg-config, if it has one.
    module: &'static str,
    /// What is linked where pkg-config does not know.
    libraries: &'static [&'static str],
}

const ENDS: [End; 3] = [
    End { variable: "SRT_END", source: "c/srt_end.c", header: "srt/srt.h", module: "srt", libraries: &["-lsrt"] },
    End { variable: "UDT_END", source: "c/udt_end.cpp", header: "udt/udt.h", module: "udt", libraries: &["-ludt"] },
    End { variable: "ENET_END", source: "c/enet_end.c", header: "enet/enet.h", module: "libenet", libraries: &["-lenet"] },
];

fn main() {
    println!("cargo::rerun-if-changed=c");
    let Some(out) = std::env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    for end in &ENDS {
        println!("cargo::rerun-if-changed=/usr/include/{}", end.header);
        let compiler = cc::Build::new().cpp(end.source.ends_with("pp")).warnings(true).opt_level(2).get_compiler();
        let probe = out.join("probe.cpp");
        let include = format!("#include <{}>\n", end.header);
        std::fs::write(&probe, include).expect("cargo gives a directory that can be written to");
        let probed = compiler.to_command().arg("-E").arg(&probe).output();
        if !probed.is_ok_and(|probed| probed.status.success()) {
            continue;
        }
        let program = out.join(end.variable.to_lowercase());
        let mut command: Command = compiler.to_command();
        command.arg(end.source).arg("-o").arg(&program).args(libraries(end)).arg("-lpthread");
        let built = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(built.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&built.stderr));
        println!("cargo::rustc-env={}={}", end.variable, program.display());
    }
}

fn libraries(end: &End) -> Vec<String> {
    let known = Command::new("pkg-config").args(["--libs", end.module]).output().ok().filter(|known| known.status.success());
    match known {
        Some(known) => String::from_utf8_lossy(&known.stdout).split_whitespace().map(str::to_owned).collect(),
        None => end.libraries.iter().map(|&library| library.to_owned()).collect(),
    }
}
