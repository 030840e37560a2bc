//! Files of a crate do not import each other in a circle, apart from types split over files.
//!
//! Imports are read from the text: paths of `use`, and those that begin with `crate` or `super`.
//! An import of a name that a folder hands on is one of the file that has it. Modules of tests,
//! which are last in their files, may import anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Circles that remain, by crate: a type with blocks of methods in child files, or one that
/// contains itself.
const SPLIT_TYPES: [(&str, &[&str]); 3] = [
    // `Fabric`.
    (
        "sim",
        &[
            "fabric",
            "fabric::collide",
            "fabric::deadlock",
            "fabric::ingress",
            "fabric::pfc",
            "fabric::stats",
            "fabric::watch",
        ],
    ),
    // `State` of a node.
    ("runtime", &["node::local", "node::state", "node::transmit"]),
    // `WorkloadSpec`, whose mixes and phases have workloads.
    ("workload", &["spec", "spec::mix", "spec::phases"]),
];

/// The path of a module in its crate, or of a name.
type Names = Vec<String>;

#[test]
fn no_files_of_a_crate_import_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for entry in fs::read_dir(&crates).expect("crates can be listed").flatten() {
        let name = entry.file_name().into_string().expect("names of crates are ASCII");
        let mut files = BTreeMap::new();
        read(&entry.path().join("src"), &[], &mut files);
        assert!(files.contains_key(&Names::new()), "crates/{name} has no lib.rs");
        for circle in circles(&files) {
            found.push((name.clone(), circle.iter().map(|module| module.join("::")).collect()));
        }
    }
    found.sort();
    let split = |&(name, modules): &(&str, &[&str])| {
        (name.to_owned(), modules.iter().map(ToString::to_string).collect())
    };
    let mut expected: Vec<(String, Vec<String>)> = SPLIT_TYPES.iter().map(split).collect();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn circles_are_found_through_folders_and_the_names_that_they_hand_on() {
    let files = |texts: &[(&str, &str)]| {
        let file = |&(module, text): &(&str, &str)| (names(module), text.to_owned());
        texts.iter().map(file).collect::<BTreeMap<Names, String>>()
    };
    let lib = ("", "mod a;\nmod b;\npub use a::A;\n");
    let folder = ("a", "mod inner;\npub(crate) use inner::{A, deep::{self, B}};\n");
    let found = |texts: &[(&str, &str)]| circles(&files(texts)).concat().len();
    assert_eq!(found(&[lib, folder, ("a::inner", "use crate::b::C;"), ("b", "// crate::a::A")]), 0);
    // The folder re-exports names of the file: the folder itself is in no circle.
    assert_eq!(
        found(&[lib, folder, ("a::inner", "use crate::b::C;"), ("b", "use crate::a::A;")]),
        2
    );
    assert_eq!(found(&[lib, ("a", "fn f() { crate::b::g() }"), ("b", "use super::a;")]), 2);
    let tests = "struct C;\n\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
    assert_eq!(found(&[lib, folder, ("a::inner", "use crate::b::C;"), ("b", tests)]), 0);
}

/// Reads the files of a folder of sources, by the paths of their modules.
fn read(folder: &Path, module: &[String], files: &mut BTreeMap<Names, String>) {
    for entry in fs::read_dir(folder).expect("sources can be read").flatten() {
        let path = entry.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        let inner = [module, std::slice::from_ref(&stem)].concat();
        if path.is_dir() {
            read(&path, &inner, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && stem != "tests" {
            let text = fs::read_to_string(&path).expect("sources can be read");
            let is_folder = matches!(&*stem, "mod" | "lib" | "main");
            files.insert(if is_folder { module.to_vec() } else { inner }, text);
        }
    }
}

/// Returns the modules of each circle.
fn circles(files: &BTreeMap<Names, String>) -> Vec<Vec<Names>> {
    let owner = |path: &[String]| {
        let n = (0..=path.len()).rev().find(|&n| files.contains_key(&path[..n]))?;
        Some((path[..n].to_vec(), path.get(n).cloned()))
    };
    let resolved = |module: &Names, path: &Names| {
        let (first, rest) = path.split_first()?;
        let supers = path.iter().take_while(|part| *part == "super").count();
        let full = match first.as_str() {
            "crate" => rest.to_vec(),
            "self" => [module, rest].concat(),
            "super" => [&module[..module.len().checked_sub(supers)?], &path[supers..]].concat(),
            name if files.contains_key(&[&module[..], &[name.to_owned()]].concat()) => {
                [&module[..], path].concat()
            }
            _ => return None,
        };
        owner(&full)
    };
    let mut handed_on = BTreeMap::new();
    for (module, text) in files {
        for (_, path) in imports(text).into_iter().filter(|(is_public, _)| *is_public) {
            if let (Some((target, _)), Some(name)) = (resolved(module, &path), path.last()) {
                handed_on.insert((module.clone(), name.clone()), target);
            }
        }
    }
    let mut edges: BTreeMap<&Names, BTreeSet<Names>> = BTreeMap::new();
    for (module, text) in files {
        for (_, path) in imports(text) {
            let Some((mut target, name)) = resolved(module, &path) else { continue };
            let name = name.unwrap_or_default();
            let next = |target: &Names| {
                let next = handed_on.get(&(target.clone(), name.clone()));
                next.filter(|&next| next != target)
            };
            while let Some(next) = next(&target) {
                target.clone_from(next);
            }
            if target != *module {
                edges.entry(module).or_default().insert(target);
            }
        }
    }
    let reachable = |from: &Names| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = open.pop() {
            for next in edges.get(&module).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Names, BTreeSet<Names>> =
        files.keys().map(|module| (module, reachable(module))).collect();
    let mut found: Vec<Vec<Names>> = Vec::new();
    for first in files.keys().filter(|&module| reached[module].contains(module)) {
        if found.iter().any(|circle| circle.contains(first)) {
            continue;
        }
        let of_circle =
            |module: &&Names| reached[*module].contains(first) && reached[first].contains(*module);
        found.push(files.keys().filter(of_circle).cloned().collect());
    }
    found
}

/// Returns the paths that a file imports, each with true if it hands the name on.
fn imports(text: &str) -> Vec<(bool, Names)> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code: Vec<&str> =
        code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for statement in code.split_inclusive(';').filter_map(|part| part.strip_suffix(';')) {
        let start = statement.rfind("use ").filter(|&at| {
            let line = statement[..at].rsplit('\n').next().unwrap_or_default().trim();
            line.is_empty() || line.starts_with("pub")
        });
        let Some(at) = start else { continue };
        let line = statement[..at].rsplit('\n').next().unwrap_or_default();
        let is_public = line.trim_start().starts_with("pub");
        found.extend(expanded(&statement[at + 4..]).into_iter().map(|path| (is_public, path)));
    }
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
            let is_inner = code[..at].ends_with(is_path);
            let path: String = code[at..].chars().take_while(|c| is_path(*c)).collect();
            if !is_inner && !path.ends_with("::") {
                found.push((false, names(&path)));
            }
        }
    }
    found
}

/// Returns the paths of `a::{b, c::{d, e}}`.
fn expanded(tree: &str) -> Vec<Names> {
    let tree = tree.trim();
    let Some((head, inner)) = tree.split_once('{') else { return vec![names(tree)] };
    let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in inner.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match (c, parts.last_mut()) {
            (',', _) if depth == 0 => parts.push(String::new()),
            (_, Some(part)) => part.push(c),
            (_, None) => {}
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| expanded(&format!("{head}{}", part.trim()))).collect()
}

/// Returns the names of a path; `self` at its end is the module before it.
fn names(path: &str) -> Names {
    let path = path.split(" as ").next().unwrap_or_default();
    let names = path.split("::").map(str::trim).filter(|name| !name.is_empty());
    let mut names: Names = names.map(str::to_owned).collect();
    if names.len() > 1 && names.last().is_some_and(|last| last == "self") {
        names.pop();
    }
    names
}
