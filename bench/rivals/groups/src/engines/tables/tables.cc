// Hash tables of C++ that count keys, each as the thesis has it: with keys in place, in structs of one size, or behind
// pointers, each in memory of its own. kernel.rs says what these functions may be called with.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include <sparsehash/sparse_hash_map>
#include <tbb/concurrent_hash_map.h>
#include <tbb/version.h>

namespace {

using Visit = void (*)(void* context, const uint8_t* key, size_t bytes, uint64_t count);

// A key as it is in a block: its length, and then its bytes.
using Entry = const uint8_t*;

std::string_view text(Entry entry) { return {reinterpret_cast<const char*>(entry + 1), *entry}; }

// Each of the three kinds of keys says how a table's key is made of an entry, for looking up (`find`) and for good
// (`keep`), and how it is shown.

struct Number {
  using Key = uint64_t;
  static Key find(Entry entry) {
    uint64_t number;
    if (*entry != sizeof number) std::abort();
    std::memcpy(&number, entry + 1, sizeof number);
    return number;
  }
  static size_t hash(Key key) { return std::hash<Key>()(key); }
  static bool equal(Key one, Key other) { return one == other; }
  static void show(Key key, uint64_t count, Visit visit, void* context) {
    visit(context, reinterpret_cast<const uint8_t*>(&key), sizeof key, count);
  }
};

template <size_t BYTES>
struct InPlace {
  struct Key {
    uint8_t bytes;
    char text[BYTES - 1];
  };
  static Key find(Entry entry) {
    Key key;
    if (*entry >= BYTES) std::abort();
    std::memcpy(&key, entry, size_t{1} + *entry);
    return key;
  }
  static std::string_view text_of(const Key& key) { return {key.text, key.bytes}; }
  static size_t hash(const Key& key) { return std::hash<std::string_view>()(text_of(key)); }
  static bool equal(const Key& one, const Key& other) { return text_of(one) == text_of(other); }
  static void show(const Key& key, uint64_t count, Visit visit, void* context) {
    visit(context, reinterpret_cast<const uint8_t*>(key.text), key.bytes, count);
  }
};

struct Pointer {
  using Key = Entry;
  static Key find(Entry entry) { return entry; }
  static Key keep(Entry entry) {
    auto* copy = static_cast<uint8_t*>(std::malloc(size_t{1} + *entry));
    if (copy == nullptr) throw std::bad_alloc();
    std::memcpy(copy, entry, size_t{1} + *entry);
    return copy;
  }
  static void drop(Key key) { std::free(const_cast<uint8_t*>(key)); }
  static size_t hash(Key key) { return std::hash<std::string_view>()(text(key)); }
  static bool equal(Key one, Key other) { return text(one) == text(other); }
  static void show(Key key, uint64_t count, Visit visit, void* context) {
    visit(context, key + 1, *key, count);
  }
};

template <class Kind>
constexpr bool IS_POINTER = std::is_same_v<Kind, Pointer>;

}  // namespace

// A table that counts.
struct ForebayTable {
  virtual ~ForebayTable() = default;
  virtual void add(Entry entry) = 0;
  virtual void each(void* context, Visit visit) const = 0;
  // A call for a whole block, not for each key, comes from outside.
  virtual void add_block(const uint8_t* block, size_t bytes) = 0;
};

namespace {

// Gives every block to `Table::add` without a virtual call for each key.
template <class Table>
struct Blocks : ForebayTable {
  void add_block(const uint8_t* block, size_t bytes) final {
    const uint8_t* end = block + bytes;
    Entry entry = block;
    while (entry < end && *entry != 0 && *entry < end - entry) {
      static_cast<Table*>(this)->Table::add(entry);
      entry += size_t{1} + *entry;
    }
  }
};

template <class Kind>
struct Sparse final : Blocks<Sparse<Kind>> {
  struct Hash {
    size_t operator()(const typename Kind::Key& key) const { return Kind::hash(key); }
  };
  struct Equal {
    bool operator()(const typename Kind::Key& one, const typename Kind::Key& other) const {
      return Kind::equal(one, other);
    }
  };
  google::sparse_hash_map<typename Kind::Key, uint64_t, Hash, Equal> map;

  ~Sparse() override {
    if constexpr (IS_POINTER<Kind>) {
      for (const auto& pair : map) Kind::drop(pair.first);
    }
  }
  void add(Entry entry) override {
    if constexpr (IS_POINTER<Kind>) {
      auto found = map.find(Kind::find(entry));
      if (found != map.end()) {
        ++found->second;
      } else {
        map.insert(std::pair<const Entry, uint64_t>(Kind::keep(entry), 1));
      }
    } else {
      ++map[Kind::find(entry)];
    }
  }
  void each(void* context, Visit visit) const override {
    for (const auto& pair : map) Kind::show(pair.first, pair.second, visit, context);
  }
};

template <class Kind>
struct Concurrent final : Blocks<Concurrent<Kind>> {
  struct Compare {
    static size_t hash(const typename Kind::Key& key) {
      if constexpr (std::is_same_v<Kind, Number>) {
        return tbb::tbb_hash_compare<uint64_t>().hash(key);
      } else {
        return Kind::hash(key);
      }
    }
    static bool equal(const typename Kind::Key& one, const typename Kind::Key& other) {
      return Kind::equal(one, other);
    }
  };
  using Map = tbb::concurrent_hash_map<typename Kind::Key, uint64_t, Compare>;
  Map map;

  ~Concurrent() override {
    if constexpr (IS_POINTER<Kind>) {
      for (const auto& pair : map) Kind::drop(pair.first);
    }
  }
  void add(Entry entry) override {
    typename Map::accessor at;
    if constexpr (IS_POINTER<Kind>) {
      if (!map.find(at, Kind::find(entry))) {
        Entry copy = Kind::keep(entry);
        // Another thread may have come first.
        if (!map.insert(at, copy)) Kind::drop(copy);
      }
    } else {
      map.insert(at, Kind::find(entry));
    }
    ++at->second;
  }
  void each(void* context, Visit visit) const override {
    for (const auto& pair : map) Kind::show(pair.first, pair.second, visit, context);
  }
};

// A struct of the least size that the longest key fits into.
template <template <class> class Table>
ForebayTable* in_place(size_t key_bytes_max) {
  if (key_bytes_max < 16) return new Table<InPlace<16>>();
  if (key_bytes_max < 24) return new Table<InPlace<24>>();
  if (key_bytes_max < 32) return new Table<InPlace<32>>();
  if (key_bytes_max < 40) return new Table<InPlace<40>>();
  if (key_bytes_max < 72) return new Table<InPlace<72>>();
  return nullptr;
}

template <template <class> class Table>
ForebayTable* table(int keys, size_t key_bytes_max) {
  switch (keys) {
    case 0: return new Table<Number>();
    case 1: return in_place<Table>(key_bytes_max);
    case 2: return new Table<Pointer>();
    default: return nullptr;
  }
}

}  // namespace

extern "C" {

ForebayTable* forebay_table_sparse(int keys, size_t key_bytes_max) noexcept {
  return table<Sparse>(keys, key_bytes_max);
}

ForebayTable* forebay_table_concurrent(int keys, size_t key_bytes_max) noexcept {
  return table<Concurrent>(keys, key_bytes_max);
}

void forebay_table_add(ForebayTable* table, const uint8_t* block, size_t bytes) noexcept {
  table->add_block(block, bytes);
}

void forebay_table_each(const ForebayTable* table, void* context, Visit visit) noexcept {
  table->each(context, visit);
}

void forebay_table_delete(ForebayTable* table) noexcept { delete table; }

const char* forebay_table_concurrent_version() noexcept { return TBB_runtime_version(); }

}  // extern "C"
