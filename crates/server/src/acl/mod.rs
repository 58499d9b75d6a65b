//! Users: who may do what.
//!
//! 1. [`table`]: categories of commands, and what each does with its keys.
//! 2. [`user`]: rules in Redis's own words, and what they refuse.
//! 3. [`log`]: what was refused; and how long who guesses has to wait.
//!
//! A connection keeps its user, and looks for a newer one when anything has changed: so who loses a right has lost it with the
//! next request.

mod log;
mod passwords;
mod table;
#[cfg(test)]
mod tests;
mod user;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay::{Error, Result};
use forebay_env::sync::{Mutex, RwLock};

use crate::config::Config;
pub(crate) use log::{Guesses, Log, Note};
pub(crate) use passwords::hex;
pub(crate) use table::is_write;
pub(crate) use user::{Denied, User};

const USERS_MAX: usize = 10_000;
const FILE_BYTES_MAX: u64 = 16 << 20;
const DEFAULT: &[u8] = b"default";

type Users = BTreeMap<Vec<u8>, Arc<User>>;

/// See the module.
pub(crate) struct Acl {
    users: RwLock<Users>,
    /// It grows with each change.
    version: AtomicU64,
    next_born: AtomicU64,
    /// Held while users are changed.
    changing: Mutex<()>,
    file: Option<PathBuf>,
    password: Option<String>,
    /// Strangers come to the server: they are not to be users without a password.
    lets_strangers: bool,
    pub(crate) log: Mutex<Log>,
    pub(crate) guesses: Mutex<Guesses>,
}

impl Acl {
    pub(crate) fn new(config: &Config) -> Result<Self> {
        let acl = Self {
            users: RwLock::default(),
            version: AtomicU64::new(0),
            next_born: AtomicU64::new(1),
            changing: Mutex::default(),
            file: config.acl_file.clone(),
            password: config.password.clone(),
            lets_strangers: config.lets_strangers(config.listen, config.is_encrypted())
                || config.tls_listen.is_some_and(|address| config.lets_strangers(address, true)),
            log: Mutex::default(),
            guesses: Mutex::default(),
        };
        let users = match &acl.file {
            Some(file) => acl.read(file).map_err(Error::invalid)?,
            None => acl.parse(b"").map_err(Error::invalid)?,
        };
        *acl.users.write() = users;
        Ok(acl)
    }

    fn born(&self) -> u64 {
        self.next_born.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<Arc<User>> {
        self.users.read().get(name).cloned()
    }

    /// Who comes without a word. There is always one.
    pub(crate) fn default_user(&self) -> Arc<User> {
        self.find(DEFAULT).unwrap_or_else(|| Arc::new(User::new(DEFAULT, 0)))
    }

    /// The newer one of a user, unless it was deleted.
    pub(crate) fn newer(&self, user: &User) -> Option<Arc<User>> {
        self.find(&user.name).filter(|found| found.born == user.born)
    }

    /// The user whose password this is.
    pub(crate) fn log_in(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let asked = passwords::hash(password);
        self.find(name).filter(|user| user.takes(&asked))
    }

    pub(crate) fn all(&self) -> Vec<Arc<User>> {
        self.users.read().values().cloned().collect()
    }

    /// Makes a user, or changes it: by all of the rules, or by none.
    pub(crate) fn set(&self, name: &[u8], rules: &[&[u8]]) -> std::result::Result<(), String> {
        let _changing = self.changing.lock();
        let mut user = match self.find(name) {
            Some(user) => (*user).clone(),
            None if self.users.read().len() >= USERS_MAX => {
                return Err(format!("ERR there are {USERS_MAX} users"));
            }
            None => User::new(name, self.born()),
        };
        for rule in rules {
            user.apply(rule).map_err(|reason| {
                let rule = crate::commands::shown(rule);
                format!("ERR Error in ACL SETUSER modifier '{rule}': {reason}")
            })?;
        }
        self.check_default(&user).map_err(|reason| format!("ERR {reason}"))?;
        self.users.write().insert(name.into(), Arc::new(user));
        self.changed();
        Ok(())
    }

    /// Whether there was one.
    pub(crate) fn delete(&self, name: &[u8]) -> bool {
        let _changing = self.changing.lock();
        let was_there = self.users.write().remove(name).is_some();
        self.changed();
        was_there
    }

    /// What a server refuses when it begins to listen, it refuses later, too.
    fn check_default(&self, user: &User) -> std::result::Result<(), String> {
        match self.lets_strangers && user.name == DEFAULT && user.is_open() {
            true => Err("the user 'default' would need no password, and others than this machine reach the server; give it \
                         one, or turn it off by `user default off`"
                .into()),
            false => Ok(()),
        }
    }

    fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Reads the file again: all of it, or nothing.
    pub(crate) fn load(&self) -> std::result::Result<(), String> {
        let _changing = self.changing.lock();
        let mut users = self.read(self.told_file()?)?;
        users.get(DEFAULT).map_or(Ok(()), |user| self.check_default(user))?;
        for (name, user) in &mut users {
            if let Some(before) = self.find(name) {
                Arc::make_mut(user).born = before.born;
            }
        }
        *self.users.write() = users;
        self.changed();
        Ok(())
    }

    /// Writes all users to the file, or leaves what is there. A password that the server was given otherwise stays out.
    pub(crate) fn save(&self) -> std::result::Result<(), String> {
        let _changing = self.changing.lock();
        let file = self.told_file()?;
        let mut users = self.all();
        if let (Some(password), Some(default)) =
            (&self.password, users.iter_mut().find(|user| user.name == DEFAULT))
        {
            // It may have been taken from the user.
            let _ = Arc::make_mut(default).apply(&[b"<", password.as_bytes()].concat());
        }
        let (text, told) = (text_of(&users), |reason| format!("{}: {reason}", file.display()));
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(told(format!("it would have more than {FILE_BYTES_MAX} bytes, and stays as it is")));
        }
        parse(&text, || 0).map_err(|reason| told(format!("it would not be read again: {reason}")))?;
        write(file, &text).map_err(|error| told(error.to_string()))
    }

    fn told_file(&self) -> std::result::Result<&Path, String> {
        self.file.as_deref().ok_or_else(|| "the server has no file of users: give `--acl-file FILE`".into())
    }

    fn read(&self, file: &Path) -> std::result::Result<Users, String> {
        let told = |reason: String| format!("{}: {reason}", file.display());
        let bytes = std::fs::metadata(file).map_err(|error| told(error.to_string()))?.len();
        if bytes > FILE_BYTES_MAX {
            return Err(told(format!("it has more than {FILE_BYTES_MAX} bytes")));
        }
        let text = std::fs::read(file).map_err(|error| told(error.to_string()))?;
        self.parse(&text).map_err(told)
    }

    /// The users of a file, and a default one where it has none.
    fn parse(&self, text: &[u8]) -> std::result::Result<Users, String> {
        let mut users = parse(text, || self.born())?;
        let default =
            users.entry(DEFAULT.into()).or_insert_with(|| Arc::new(User::free(DEFAULT, self.born())));
        if let Some(password) = &self.password {
            let password = [b">", password.as_bytes()].concat();
            Arc::make_mut(default).apply(&password).map_err(String::from)?;
        }
        Ok(users)
    }
}

/// The users of a text: `user NAME rule rule…`, one a line.
fn parse(text: &[u8], born: impl Fn() -> u64) -> std::result::Result<Users, String> {
    let mut users = Users::new();
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let told = |reason: String| format!("line {}: {reason}", number + 1);
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        match words.next() {
            None => continue,
            Some(word) if word.starts_with(b"#") => continue,
            Some(b"user") => {}
            Some(_) => return Err(told("a line of users begins with `user NAME`".into())),
        }
        let name = words.next().ok_or_else(|| told("the name is missing behind `user`".into()))?;
        if !is_name(name) || users.contains_key(name) || users.len() >= USERS_MAX {
            let name = crate::commands::shown(name);
            return Err(told(format!(
                "the user '{name}' is there already, or is one too many, or is no name"
            )));
        }
        let mut user = User::new(name, born());
        // A word may be a password that lacks its sign: nobody is told it.
        for (number, rule) in (3..).zip(words) {
            user.apply(rule).map_err(|reason| told(format!("word {number}: {reason}")))?;
        }
        users.insert(name.into(), Arc::new(user));
    }
    Ok(users)
}

/// Whether a user may be named so: it is one word of a line.
pub(crate) fn is_name(name: &[u8]) -> bool {
    let is_free = |byte: &u8| !byte.is_ascii_whitespace() && *byte != 0;
    !name.is_empty() && name.len() <= 256 && name.iter().all(is_free)
}

/// Writes a file that only the owner may read, beside the old one and in its place.
fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut name = file.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    let beside = file.with_file_name(name);
    // What is there may have other rights, or be a link.
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = made.write_all(bytes).and_then(|()| made.sync_all());
    if let Err(error) = written.and_then(|()| std::fs::rename(&beside, file)) {
        let _ = std::fs::remove_file(&beside);
        return Err(error);
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(folder)?.sync_all()
}

/// The users of a file, as they would be written.
pub(crate) fn shown_users(text: &[u8]) -> std::result::Result<Vec<u8>, String> {
    parse(text, || 0).map(|users| text_of(users.values()))
}

/// A line for each user.
fn text_of<'u>(users: impl IntoIterator<Item = &'u Arc<User>>) -> Vec<u8> {
    users.into_iter().flat_map(|user| [user.shown(), b"\n".into()].concat()).collect()
}

pub(crate) fn categories() -> &'static [&'static str] {
    &table::CATEGORIES
}

/// The commands of a category, if there is such a one.
pub(crate) fn commands_of(category: &str) -> Option<Vec<&'static str>> {
    let bit = table::category(category)?;
    let rows = table::TABLE.rows.iter();
    Some(rows.filter(|row| row.categories & bit != 0).map(|row| &*row.name).collect())
}

/// The categories of a command.
pub(crate) fn categories_of(command: &str) -> Vec<&'static str> {
    let Some(number) = table::TABLE.find(command) else { return Vec::new() };
    let bits = table::TABLE.rows[number].categories;
    let all = categories().iter().enumerate();
    all.filter(|(at, _)| bits & 1 << at != 0).map(|(_, name)| *name).collect()
}

/// What `ACL GETUSER` tells of a user.
pub(crate) struct Told {
    pub(crate) flags: Vec<&'static str>,
    pub(crate) passwords: Vec<String>,
    /// Commands, keys, channels.
    pub(crate) rules: [(&'static str, Vec<u8>); 3],
}

pub(crate) fn told(user: &User) -> Told {
    Told {
        flags: user.flags(),
        passwords: user.passwords.iter().map(|hash| hex(hash)).collect(),
        rules: [
            ("commands", user.shown_commands().into_bytes()),
            ("keys", user.shown_keys()),
            ("channels", user.shown_channels()),
        ],
    }
}
