//! RocksDB, by the system's library and its C interface: one open database in a process.
//!
//! All unsafe code is here. Calls block; reads of cached blocks take microseconds.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use anyhow::{Context, anyhow};
use bytes::Bytes;

use crate::config::{Config, Durability};
use crate::record;

/// An open database.
#[derive(Debug)]
pub struct Rocks {
    folder: CString,
    database: *mut c_void,
    options: *mut c_void,
    read: *mut c_void,
    write: *mut c_void,
}

// SAFETY: RocksDB's handles may be used by many threads at once; the options are not changed after opening.
unsafe impl Send for Rocks {}
// SAFETY: as above.
unsafe impl Sync for Rocks {}

impl Rocks {
    /// Opens the database in a folder, or makes it.
    pub fn open(path: &Path, config: &Config) -> anyhow::Result<Rocks> {
        std::fs::create_dir_all(path).with_context(|| format!("making the folder {}", path.display()))?;
        let name = CString::new(path.as_os_str().as_bytes())?;
        let threads = c_int::try_from(config.store_threads.max(2))?;
        // SAFETY: all pointers come from RocksDB, and live as long as the process.
        unsafe {
            let options = rocksdb_options_create();
            rocksdb_options_set_create_if_missing(options, 1);
            rocksdb_options_increase_parallelism(options, threads);
            rocksdb_options_enable_statistics(options);
            rocksdb_options_set_keep_log_file_num(options, 1);
            rocksdb_options_set_write_buffer_size(options, config.write_buffer_bytes);
            let tables = rocksdb_block_based_options_create();
            rocksdb_block_based_options_set_block_cache(tables, rocksdb_cache_create_lru(config.cache_bytes));
            rocksdb_block_based_options_set_filter_policy(tables, rocksdb_filterpolicy_create_bloom(10.0));
            rocksdb_options_set_block_based_table_factory(options, tables);
            let filter = rocksdb_compactionfilter_create(ptr::null_mut(), ignore, filter_over, filter_name);
            rocksdb_options_set_compaction_filter(options, filter);
            let write = rocksdb_writeoptions_create();
            rocksdb_writeoptions_disable_WAL(write, (config.durability == Durability::None).into());
            rocksdb_writeoptions_set_sync(write, (config.durability == Durability::Fsync).into());
            let mut error = ptr::null_mut();
            let database = rocksdb_open(options, name.as_ptr(), &mut error);
            checked(error).with_context(|| format!("opening {}", path.display()))?;
            Ok(Rocks { folder: name, database, options, read: rocksdb_readoptions_create(), write })
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> anyhow::Result<Option<Bytes>> {
        let (mut error, mut length) = (ptr::null_mut(), 0);
        // SAFETY: `key` outlives the call; the value is copied before it is freed.
        unsafe {
            let slice = rocksdb_get_pinned(self.database, self.read, key.as_ptr().cast(), key.len(), &mut error);
            checked(error)?;
            if slice.is_null() {
                return Ok(None);
            }
            let value = rocksdb_pinnableslice_value(slice, &mut length);
            let value = Bytes::copy_from_slice(std::slice::from_raw_parts(value.cast(), length));
            rocksdb_pinnableslice_destroy(slice);
            Ok(Some(value))
        }
    }

    /// Writes a value.
    pub fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        let mut error = ptr::null_mut();
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: both slices outlive the call.
        unsafe { rocksdb_put(self.database, self.write, k, key.len(), v, value.len(), &mut error) };
        checked(error)
    }

    /// What is left on the disk, bytes; nothing where the system does not say.
    pub fn room(&self) -> u64 {
        // SAFETY: zeros are a value of this type, and the path ends with NUL.
        let (failed, told) = unsafe {
            let mut told: libc::statvfs = std::mem::zeroed();
            (libc::statvfs(self.folder.as_ptr(), &mut told), told)
        };
        if failed == 0 { told.f_bavail * told.f_frsize } else { 0 }
    }

    /// What RocksDB tells of itself: sizes in bytes, now; counts and bytes since the start.
    pub fn numbers(&self) -> [(&'static str, u64); 7] {
        // SAFETY: the text is freed after it was read.
        let statistics = unsafe { owned(rocksdb_options_statistics_get_string(self.options)) }.unwrap_or_default();
        [
            ("size_bytes", self.property(c"rocksdb.total-sst-files-size")),
            ("memory_bytes", self.property(c"rocksdb.size-all-mem-tables")),
            ("keys", self.property(c"rocksdb.estimate-num-keys")),
            ("compactions", count(&statistics, "rocksdb.compaction.times.micros")),
            ("compactions_running", self.property(c"rocksdb.num-running-compactions")),
            ("compaction_written_bytes", count(&statistics, "rocksdb.compact.write.bytes")),
            ("flush_written_bytes", count(&statistics, "rocksdb.flush.write.bytes")),
        ]
    }

    /// A number that RocksDB tells; 0 where it does not.
    fn property(&self, name: &CStr) -> u64 {
        // SAFETY: the text is freed after it was read.
        let text = unsafe { owned(rocksdb_property_value(self.database, name.as_ptr())) };
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Closes the database: what is in memory is written out. Nothing may be called afterwards.
    pub fn close(&self) {
        // SAFETY: the threads that used it have ended.
        unsafe { rocksdb_close(self.database) };
    }
}

/// A count in RocksDB's statistics, where a counter's line is `name COUNT : 3` and a histogram's has more around that.
fn count(statistics: &str, name: &str) -> u64 {
    let mut lines = statistics.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let count = lines.next().and_then(|line| line.split_once("COUNT : ")?.1.split(' ').next()?.parse().ok());
    count.unwrap_or(0)
}

fn checked(error: *mut c_char) -> anyhow::Result<()> {
    // SAFETY: RocksDB gives the error away.
    match unsafe { owned(error) } {
        Some(text) => Err(anyhow!("RocksDB: {text}")),
        None => Ok(()),
    }
}

/// Takes a text that RocksDB allocated.
unsafe fn owned(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller gives a text of RocksDB, ended by NUL.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        rocksdb_free(text.cast());
        Some(copy)
    }
}

extern "C" fn ignore(_state: *mut c_void) {}

extern "C" fn filter_name(_state: *mut c_void) -> *const c_char {
    c"records that are over".as_ptr()
}

/// Tells compactions to drop what need not be kept.
extern "C" fn filter_over(
    _state: *mut c_void,
    _level: c_int,
    _key: *const c_char,
    _key_length: usize,
    value: *const c_char,
    length: usize,
    _new_value: *mut *mut c_char,
    _new_length: *mut usize,
    _changed: *mut c_uchar,
) -> c_uchar {
    // SAFETY: RocksDB gives a value of this length.
    let value = unsafe { std::slice::from_raw_parts(value.cast(), length) };
    record::is_over(value).into()
}

type Filter = extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut c_uchar,
) -> c_uchar;

unsafe extern "C" {
    fn rocksdb_options_create() -> *mut c_void;
    fn rocksdb_options_set_create_if_missing(options: *mut c_void, yes: c_uchar);
    fn rocksdb_options_increase_parallelism(options: *mut c_void, threads: c_int);
    fn rocksdb_options_enable_statistics(options: *mut c_void);
    fn rocksdb_options_statistics_get_string(options: *mut c_void) -> *mut c_char;
    fn rocksdb_options_set_write_buffer_size(options: *mut c_void, bytes: usize);
    fn rocksdb_options_set_keep_log_file_num(options: *mut c_void, number: usize);
    fn rocksdb_options_set_compaction_filter(options: *mut c_void, filter: *mut c_void);
    fn rocksdb_options_set_block_based_table_factory(options: *mut c_void, tables: *mut c_void);
    fn rocksdb_block_based_options_create() -> *mut c_void;
    fn rocksdb_block_based_options_set_block_cache(tables: *mut c_void, cache: *mut c_void);
    fn rocksdb_block_based_options_set_filter_policy(tables: *mut c_void, policy: *mut c_void);
    fn rocksdb_cache_create_lru(bytes: usize) -> *mut c_void;
    fn rocksdb_filterpolicy_create_bloom(bits: f64) -> *mut c_void;
    fn rocksdb_compactionfilter_create(
        state: *mut c_void,
        destructor: extern "C" fn(*mut c_void),
        filter: Filter,
        name: extern "C" fn(*mut c_void) -> *const c_char,
    ) -> *mut c_void;
    fn rocksdb_readoptions_create() -> *mut c_void;
    fn rocksdb_writeoptions_create() -> *mut c_void;
    fn rocksdb_writeoptions_disable_WAL(options: *mut c_void, yes: c_int);
    fn rocksdb_writeoptions_set_sync(options: *mut c_void, yes: c_uchar);
    fn rocksdb_open(options: *mut c_void, path: *const c_char, error: *mut *mut c_char) -> *mut c_void;
    fn rocksdb_close(database: *mut c_void);
    fn rocksdb_get_pinned(
        database: *mut c_void,
        options: *mut c_void,
        key: *const c_char,
        length: usize,
        error: *mut *mut c_char,
    ) -> *mut c_void;
    fn rocksdb_pinnableslice_value(slice: *mut c_void, length: *mut usize) -> *const c_char;
    fn rocksdb_pinnableslice_destroy(slice: *mut c_void);
    fn rocksdb_put(
        database: *mut c_void,
        options: *mut c_void,
        key: *const c_char,
        key_length: usize,
        value: *const c_char,
        length: usize,
        error: *mut *mut c_char,
    );
    fn rocksdb_property_value(database: *mut c_void, name: *const c_char) -> *mut c_char;
    fn rocksdb_free(memory: *mut c_void);
}
