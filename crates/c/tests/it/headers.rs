//! Each header declares what the code has, call by call, and nothing else.

use std::collections::BTreeSet;

use crate::{files, folder};

/// What is not a handle whose name is the type's own.
const NAMES: &[(&str, &str)] = &[
    ("&str", "char *"),
    ("Option<&str>", "char *"),
    ("&Path", "char *"),
    ("*const c_char", "char *"),
    ("*mut c_char", "char *"),
    ("*mut *mut c_char", "char **"),
    ("*mut c_void", "void *"),
    ("Memory", "void *"),
    ("bool", "bool"),
    ("usize", "size_t"),
    ("u64", "uint64_t"),
    ("u8", "unsigned char"),
    ("c_int", "int"),
    ("Channel", "int"),
    ("Slice", "forebay_slice"),
    ("Entry", "forebay_entry"),
    ("Told", "forebay_change"),
    ("*const Told", "forebay_change *"),
    ("Durability", "forebay_durability"),
    ("Direction", "forebay_direction"),
    ("Merge", "forebay_merge"),
    ("LevelDb", "leveldb_t"),
    ("LevelOptions", "leveldb_options_t"),
    ("ReadOptions", "leveldb_readoptions_t"),
    ("WriteOptions", "leveldb_writeoptions_t"),
    ("LevelSnapshot", "leveldb_snapshot_t"),
    ("LevelBatch", "leveldb_writebatch_t"),
    ("LevelIterator", "leveldb_iterator_t"),
    ("Comparator", "leveldb_comparator_t"),
    ("FilterPolicy", "leveldb_filterpolicy_t"),
    ("Cache", "leveldb_cache_t"),
    ("Environment", "leveldb_env_t"),
    ("Logger", "leveldb_logger_t"),
    // Functions: `@` stands for the parameter's name.
    ("Destructor", "void (*@)(void *state)"),
    ("Name", "char *(*@)(void *state)"),
    ("Compare", "int (*@)(void *state, char *a, size_t a_bytes, char *b, size_t b_bytes)"),
    (
        "CreateFilter",
        "char *(*@)(void *state, char **keys, size_t *key_bytes, int key_count, size_t *filter_bytes)",
    ),
    (
        "KeyMayMatch",
        "unsigned char (*@)(void *state, char *key, size_t key_bytes, char *filter, size_t filter_bytes)",
    ),
    ("Put", "void (*@)(void *state, char *key, size_t key_bytes, char *value, size_t value_bytes)"),
    ("Deleted", "void (*@)(void *state, char *key, size_t key_bytes)"),
];

/// What wraps another type that C has a pointer to, and what closes it.
const POINTERS: &[(&str, &str)] = &[
    ("Option<Box<", ">>"),
    ("Option<&mut ", ">"),
    ("Option<&", ">"),
    ("Items<'_, ", ">"),
    ("Room<'_, ", ">"),
    ("Out<'_, ", ">"),
    ("Box<", ">"),
    ("&mut [", "]"),
    ("&mut ", ""),
    ("&", ""),
];

/// The C type of a Rust type.
fn c_type(rust: &str, bytes: &str) -> String {
    if let Some((_, known)) = NAMES.iter().find(|(name, _)| *name == rust) {
        return (*known).to_string();
    }
    if rust == "&[u8]" || rust == "Option<&[u8]>" {
        return bytes.to_string();
    }
    for (start, end) in POINTERS {
        if let Some(inner) = rust.strip_prefix(start).and_then(|inner| inner.strip_suffix(end)) {
            let inner = c_type(inner, bytes);
            return if inner.ends_with('*') { format!("{inner}*") } else { format!("{inner} *") };
        }
    }
    // `TableOptions` is `forebay_table_options`.
    let mut name = String::from("forebay");
    for letter in rust.chars() {
        if letter.is_uppercase() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// A parameter with its name, or a function with what it returns.
fn declared(c_type: &str, name: &str) -> String {
    if c_type.contains('@') {
        return c_type.replace('@', name);
    }
    let space = if c_type.ends_with('*') { "" } else { " " };
    format!("{c_type}{space}{name}")
}

/// The declarations that the macros of a source file come to.
fn of_source(text: &str, all: &mut BTreeSet<String>) {
    let (mut first, mut last) = (None, None);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "plain! {" {
            (first, last) = (None, None);
        } else if let Some(error) = line.strip_prefix("fallible! { ") {
            let is_text = error.starts_with("TextOut");
            (first, last) = (None, Some(if is_text { "char **errptr" } else { "forebay_error **error" }));
        } else if let Some(to) = line.strip_prefix("noted! { ") {
            let (name, kept) = to.trim_end_matches(';').split_once(": ").unwrap();
            (first, last) = (Some(declared(&c_type(kept, ""), name)), None);
        }
        let Some(function) = line.strip_prefix("    fn ") else { continue };
        if !function.starts_with("forebay_") && !function.starts_with("leveldb_") {
            continue;
        }
        let mut function = function.to_string();
        while !function.contains('{') {
            function.push(' ');
            function.push_str(lines.next().unwrap().trim());
        }
        all.insert(declaration(&function, first.clone(), last));
    }
}

fn declaration(function: &str, first: Option<String>, last: Option<&str>) -> String {
    let (name, rest) = function.split_once('(').unwrap();
    let (parameters, rest) = rest.rsplit_once(')').unwrap();
    let bytes = if name.starts_with("leveldb_") { "char *" } else { "void *" };
    let mut all = Vec::from_iter(first);
    // Commas stand in types as well, but only behind a lifetime.
    let parameters = parameters.replace("'_, ", "'_;");
    for parameter in parameters.split(',').map(str::trim).filter(|parameter| !parameter.is_empty()) {
        let parameter = parameter.replace("'_;", "'_, ");
        let (name, rust) = parameter.split_once(": ").unwrap();
        let rust = rust.split(" where ").next().unwrap();
        let (rust, length) = match rust.rsplit_once(" [") {
            Some((rust, length)) => (rust, length.strip_suffix(']')),
            None => (rust, None),
        };
        all.push(declared(&c_type(rust, bytes), name.trim_start_matches('_')));
        all.extend(length.map(|length| format!("size_t {}", length.trim_start_matches('_'))));
    }
    all.extend(last.map(str::to_string));
    let parameters = if all.is_empty() { "void".to_string() } else { all.join(", ") };
    let returned = rest.split_once("->").map(|(_, rust)| rust.split('{').next().unwrap().trim());
    let returned = returned.map_or("void".to_string(), |rust| c_type(rust, bytes));
    format!("{}({parameters})", declared(&returned, name))
}

/// The declarations of a header, without what C alone knows of them: that something is constant.
fn of_header(text: &str) -> BTreeSet<String> {
    let mut code = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").unwrap().1;
    }
    code.push_str(rest);
    let lines = code.lines().filter(|line| !line.starts_with('#'));
    let code = lines.collect::<Vec<_>>().join(" ").replace("extern \"C\" {", "").replace("const ", "");
    let statements = code.split(';').map(|statement| {
        let words: Vec<&str> = statement.split_whitespace().collect();
        words.join(" ").replace("( ", "(").replace("* *", "**").replace("*const*", "**")
    });
    statements.filter(|statement| statement.contains('(') && !statement.starts_with("typedef")).collect()
}

#[test]
fn headers_declare_what_the_code_has() {
    let mut code = BTreeSet::new();
    for source in files(&folder().join("src"), ".rs") {
        of_source(&std::fs::read_to_string(source).unwrap(), &mut code);
    }
    for (header, prefix) in [("forebay.h", "forebay_"), ("leveldb/c.h", "leveldb_")] {
        let declared = of_header(&std::fs::read_to_string(folder().join("include").join(header)).unwrap());
        let of_prefix = |one: &&String| one.split('(').next().unwrap().contains(prefix);
        let code: BTreeSet<String> = code.iter().filter(of_prefix).cloned().collect();
        let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
            one.difference(other).cloned().collect::<Vec<_>>().join("\n")
        };
        let (undeclared, unknown) = (only(&code, &declared), only(&declared, &code));
        assert!(
            undeclared.is_empty() && unknown.is_empty(),
            "{header} lacks\n{undeclared}\nand declares what is not there\n{unknown}"
        );
        assert!(declared.len() > 40, "{header} has {} calls", declared.len());
    }
}

/// The codes' numbers are their order in `src/error.rs`.
#[test]
fn codes_are_numbered_alike() {
    let source = std::fs::read_to_string(folder().join("src/error.rs")).unwrap();
    let header = std::fs::read_to_string(folder().join("include/forebay.h")).unwrap();
    let names = source.split("enum Code {").nth(1).unwrap().split('}').next().unwrap();
    for (number, name) in names.split(',').map(str::trim).filter(|name| !name.is_empty()).enumerate().skip(1)
    {
        let upper = c_type(name, "").replace("forebay_", "FOREBAY_ERROR_").to_uppercase();
        let number = format!("{upper} = {number}");
        assert!([",", " ", "\n"].iter().any(|end| header.contains(&format!("{number}{end}"))), "{number}");
    }
}
