//! The same random calls on the machine's files and on the twins: every answer must be the same.

use std::path::{Path, PathBuf};

use super::{TempDir, answer, read_all};
use crate::fs::{Access, CrashFs, File, FileSystem, MemoryFs, RealFs};
use crate::rng::Rng;
use crate::sync::Arc;

/// A file system, its open files, and where it works.
struct Party<'a> {
    fs: &'a dyn FileSystem,
    dir: PathBuf,
    handles: Vec<Arc<dyn File>>,
}

fn random_path(rng: &mut Rng, dir: &Path) -> PathBuf {
    let place = ["", "sub", "sub/deep"][rng.index(3)];
    dir.join(place).join(["a", "b", "c"][rng.index(3)])
}

impl Party<'_> {
    /// One call drawn from `rng`, and its answer as text.
    fn act(&mut self, rng: &mut Rng) -> String {
        let (path, other) = (random_path(rng, &self.dir), random_path(rng, &self.dir));
        let sub = self.dir.join(["sub", "sub/deep"][rng.index(2)]);
        match rng.below(16) {
            0 | 1 => self.keep(self.fs.create(&path, Access::Buffered)),
            2 => self.keep(self.fs.open(&path, Access::Buffered)),
            3 => self.keep(self.fs.open_read(&path, Access::Random)),
            4 => format!("remove {:?}", answer(self.fs.remove(&path))),
            5 => format!("rename {:?}", answer(self.fs.rename(&path, &other))),
            6 => format!("link {:?}", answer(self.fs.hard_link(&path, &other))),
            7 => format!("mkdir {:?}", answer(self.fs.create_dir_all(&sub))),
            8 => format!("rmdir {:?}", answer(self.fs.remove_dir(&sub))),
            9 => format!("list {:?}", answer(self.fs.list(&sub))),
            10 => format!("sync dir {:?}", answer(self.fs.sync_dir(&sub))),
            11 => format!("content {:?}", answer(read_all(self.fs, &path))),
            _ => self.act_on_handle(rng),
        }
    }

    fn keep(&mut self, opened: forebay_base::Result<Arc<dyn File>>) -> String {
        let outcome = answer(opened).map(|file| self.handles.push(file));
        format!("open {outcome:?}")
    }

    fn act_on_handle(&mut self, rng: &mut Rng) -> String {
        let (choice, offset, len) = (rng.below(6), rng.below(3000), rng.index(2000));
        let mut bytes = vec![0; len];
        rng.fill(&mut bytes);
        let chosen = rng.index(self.handles.len());
        let Some(file) = self.handles.get(chosen) else { return "no handle".to_owned() };
        match choice {
            0 | 1 => format!("write {:?}", answer(file.write_at(offset, &bytes)).is_ok()),
            2 => format!("set_len {:?}", answer(file.set_len(offset)).is_ok()),
            3 => format!("reserve {:?}", answer(file.reserve(offset + 1)).is_ok()),
            4 => format!("sync {:?}", answer(file.sync())),
            _ => format!(
                "read {:?} {:?} {:?}",
                answer(file.read_at(offset, &mut bytes)),
                bytes,
                answer(file.len())
            ),
        }
    }
}

/// After this a power cut may take nothing.
fn sync_all(fs: &CrashFs) {
    for path in fs.snapshot_files().keys() {
        fs.open(path, Access::Buffered).unwrap().sync().unwrap();
    }
    for dir in ["/", "/sub", "/sub/deep"].map(Path::new) {
        if fs.exists(dir).unwrap() {
            fs.sync_dir(dir).unwrap();
        }
    }
}

#[test]
fn twins_answer_as_the_machine_does() {
    for seed in 0..60 {
        let temp = TempDir::new();
        let (real, memory, crash) = (RealFs::new(), MemoryFs::new(), CrashFs::new(seed));
        let mut parties = [
            Party { fs: &*real, dir: temp.0.clone(), handles: Vec::new() },
            Party { fs: &*memory, dir: PathBuf::from("/"), handles: Vec::new() },
            Party { fs: &*crash, dir: PathBuf::from("/"), handles: Vec::new() },
        ];
        let mut rng = Rng::new(seed);
        for step in 0..150 {
            let mut draws = [rng.clone(), rng.clone(), rng.clone()];
            let [on_real, on_memory, on_crash] = [0, 1, 2].map(|i| parties[i].act(&mut draws[i]));
            assert_eq!(on_real, on_memory, "memory, seed {seed} step {step}");
            assert_eq!(on_real, on_crash, "crash, seed {seed} step {step}");
            rng = rng.fork();
        }
        assert_eq!(memory.snapshot_files(), crash.snapshot_files(), "seed {seed}");
        sync_all(&crash);
        assert_eq!(memory.snapshot_files(), crash.power_cycle().snapshot_files(), "seed {seed}");
    }
}
