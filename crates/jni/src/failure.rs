//! [`Failure`]: why a call failed, and the exception that Java is given.

use std::any::Any;

use arrow_schema::ArrowError;
use forebay::Error;
use jni::Env;
use jni::errors::ErrorPolicy;
use jni::strings::JNIString;

/// What a call gives.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// See the module.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine's reason.
    Engine(Error),
    /// What Java's number stood for, and does not any more.
    Closed(&'static str),
    /// The JVM's own, mostly with an exception that waits already.
    Jvm(jni::errors::Error),
}

impl Failure {
    /// A wrong call.
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::Engine(Error::invalid(reason))
    }

    /// The class of the exception, and its text.
    fn told(&self) -> (String, String) {
        match self {
            Self::Engine(error) => (own(class_of(error)), error.to_string()),
            Self::Closed(what) => (own("Closed"), format!("the {what} is closed")),
            // What is caught here was thrown, and waits no more.
            Self::Jvm(jni::errors::Error::JniCall(jni::errors::JniError::NoMemory)) => {
                ("java/lang/OutOfMemoryError".into(), "Java has no room for the answer of dev.forebay".into())
            }
            Self::Jvm(error) => (own("Internal"), format!("the JVM refused a call: {error}")),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<jni::errors::Error> for Failure {
    fn from(error: jni::errors::Error) -> Self {
        Self::Jvm(error)
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        if let ArrowError::ExternalError(inner) = &error
            && let Some(engine) = inner.downcast_ref::<Error>()
        {
            return Self::Engine(engine.clone());
        }
        Self::invalid(format!("Arrow data: {error}"))
    }
}

/// A class within `ForebayException`.
fn own(class: &str) -> String {
    format!("dev/forebay/ForebayException${class}")
}

fn class_of(error: &Error) -> &'static str {
    match error {
        // Not a file that has gone: a table was dropped, or is not there.
        Error::NotFound(_) => "NotFound",
        // It was closed amid the call, which had got past the numbers.
        error if error.is_closed() => "Closed",
        error if error.is_no_space() => "NoSpace",
        Error::Io { .. } | Error::TooManyFiles { .. } => "Io",
        Error::Corruption { .. } => "Corruption",
        Error::TooLong(_) => "TooLong",
        Error::Invalid(_) => "InvalidArgument",
        Error::Locked { .. } => "Busy",
        Error::NewerFormat { .. } => "NewerFormat",
        Error::Conflict(_) => "Conflict",
        Error::ChangesGone { .. } => "ChangesGone",
        Error::Poisoned(_) => "Poisoned",
        Error::Panicked(_) | Error::Bug(_) => "Internal",
        _ => "Other",
    }
}

/// How calls end that do not end well: by an exception.
pub(crate) struct Throw;

impl<T: Default> ErrorPolicy<T, Failure> for Throw {
    type Captures<'unowned_env_local: 'native_method, 'native_method> = ();

    fn on_error<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        (): &mut (),
        failure: Failure,
    ) -> jni::errors::Result<T> {
        // One of the JVM's own stays.
        if !env.exception_check() {
            let (class, text) = failure.told();
            throw(env, &class, &text);
        }
        Ok(T::default())
    }

    fn on_panic<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        (): &mut (),
        panic: Box<dyn Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        let text = panic.downcast_ref::<&str>().copied();
        let text =
            text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text");
        if !env.exception_check() {
            throw(env, &own("Internal"), &Error::bug(format!("a call panicked: {text}")).to_string());
        }
        Ok(T::default())
    }
}

/// The class is that of the package which called: a process may have several, each of a class loader of its own. There must
/// be an exception, or what was not done counts as done.
fn throw(env: &mut Env<'_>, class: &str, text: &str) {
    for class in [class, "java/lang/Error"] {
        let thrown = env.find_class(JNIString::from(class));
        // What throws tells of the exception that waits from here on, which is what was wanted.
        let _ = thrown.and_then(|class| env.throw_new(class, JNIString::from(text)));
        if env.exception_check() {
            return;
        }
    }
    env.fatal_error(&JNIString::from(format!("{text}; and no exception could be made to tell it")));
}
