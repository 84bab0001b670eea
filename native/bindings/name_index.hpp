// Names to numbers: where each name stands in a list that Python owns. Names are equal as a dictionary's keys
// are.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bindings/python_api.hpp"

namespace skn {

namespace nb = nanobind;

// Open addressing with a number and half of a hash in eight bytes, and short names once more in sixteen: a
// look-up visits one cache line of each, neither name nor list, and those of a whole row at the same time.
// The index holds no object and can be made again from the list at any time, as it is once the list was
// restored.
class NameIndex {
 public:
  // What the index compares before it looks at the name itself.
  struct Key {
    std::uint32_t code;  // of the hash; those of integers are the integers, so bits are mixed
    std::array<unsigned char, 16> brief;  // length and text of a name of up to 15 ASCII letters, or zeros

    explicit Key(PyObject* name) : brief{} {
      const bool text = PyUnicode_CheckExact(name);
      Py_hash_t hash = text ? known_hash(name) : -1;  // -1: not known yet
      if (hash == -1) hash = PyObject_Hash(name);
      if (hash == -1) nanobind::raise_python_error();
      code = static_cast<std::uint32_t>((static_cast<std::uint64_t>(hash) * 0x9E3779B97F4A7C15u) >> 32);
      if (!text || text_length(name) > 15) return;
      const auto ascii = as_ascii(name);
      if (!ascii) return;
      brief[0] = static_cast<unsigned char>(1 + ascii->size());
      std::memcpy(&brief[1], ascii->data(), ascii->size());
    }
  };

  // Enters names that the list has and the index has not.
  void follow(PyObject* names) {
    if (static_cast<std::size_t>(list_size(names)) < briefs_.size()) *this = NameIndex();
    while (briefs_.size() < static_cast<std::size_t>(list_size(names))) {
      const nanobind::object name = nanobind::borrow(list_item(names, briefs_.size()));
      enter(Key(name.ptr()));
    }
  }

  void prefetch(const Key& key) const { __builtin_prefetch(&slots_[home(key.code)]); }

  // After the above, the rest of what find() looks at.
  void prefetch_more(const Key& key) const {
    for (std::uint32_t at = home(key.code); slots_[at].number != 0; at = next(at))
      if (slots_[at].code == key.code) return __builtin_prefetch(&briefs_[slots_[at].number - 1]);
  }

  // The number of a name, or -1. Comparing names may run anything, even this, so nothing is remembered over
  // it.
  std::int64_t find(PyObject* names, PyObject* name, const Key& key) const {
    for (std::uint32_t at = home(key.code); slots_[at].number != 0; at = next(at)) {
      const Slot slot = slots_[at];
      if (slot.code != key.code) continue;
      const auto& brief = briefs_[slot.number - 1];
      if (brief[0] != 0 && key.brief[0] != 0) {
        if (brief == key.brief) return slot.number - 1;
      } else if (slot.number <= list_size(names) && equal(list_item(names, slot.number - 1), name)) {
        return slot.number - 1;
      }
    }
    return -1;
  }

  // The next number, for a name that find() does not know.
  std::int64_t add(PyObject* names, PyObject* name, const Key& key) {
    if (PyList_Append(names, name) != 0) nanobind::raise_python_error();
    enter(key);
    return list_size(names) - 1;
  }

 private:
  struct Slot {
    std::uint32_t code = 0;
    std::uint32_t number = 0;  // plus one; zero is empty
  };

  std::uint32_t home(std::uint32_t code) const { return code >> shift_; }
  std::uint32_t next(std::uint32_t at) const {
    return (at + 1) & (static_cast<std::uint32_t>(slots_.size()) - 1);
  }

  void enter(const Key& key) {
    if (4 * briefs_.size() >= 3 * slots_.size()) grow();
    briefs_.push_back(key.brief);
    put({key.code, static_cast<std::uint32_t>(briefs_.size())});
  }

  void put(Slot slot) {
    std::uint32_t at = home(slot.code);
    while (slots_[at].number != 0) at = next(at);
    slots_[at] = slot;
  }

  void grow() {
    if (shift_ == 1) throw std::length_error("too many names of features to number them: use hashing");
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    --shift_;
    for (const Slot& slot : old)
      if (slot.number != 0) put(slot);
  }

  // As a dictionary's keys are; strings, of any length and alphabet, without asking Python.
  static bool equal(PyObject* known, PyObject* name) {
    if (known == name) return true;
    if (PyUnicode_CheckExact(known) && PyUnicode_CheckExact(name)) return equal_texts(known, name);
    const nanobind::object hold = nanobind::borrow(known);
    const int same = PyObject_RichCompareBool(known, name, Py_EQ);
    if (same < 0) nanobind::raise_python_error();
    return same != 0;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(16);
  int shift_ = 32 - 4;                                 // codes are 32 bits, slots 2^4
  std::vector<std::array<unsigned char, 16>> briefs_;  // of each number
};

}  // namespace skn
