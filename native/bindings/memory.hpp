// Memory of parsed batches, as Python sees it: a buffer that nobody can write to once it is sealed.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "bindings/array.hpp"
#include "bindings/python_api.hpp"
#include "memory/buffer_pool.hpp"

namespace skn {

// Numbers of one kind, one after the other. Rows in sealed memory stay what they were when they were checked:
// they need not be copied before they are used.
class Memory {
 public:
  // Bytes of any content, which may have been those of an earlier batch, to be written to and then sealed.
  explicit Memory(std::size_t bytes) : Memory(pooled<std::uint8_t>(bytes), bytes, "B", false) {}

  // A memoryview of the first `size` numbers, sealed. That takes no NumPy, so a command can parse ahead while
  // it is still importing it.
  template <class T>
  static nb::object view(Pooled<T> numbers, std::size_t size) {
    nb::object made =
        nb::cast(new Memory(std::move(numbers), size, format<T>(), true), nb::rv_policy::take_ownership);
    return nb::steal(PyMemoryView_FromObject(made.ptr()));
  }

  void seal() {
    require(writers_ == 0, "memory that is being written to cannot be sealed");
    sealed_ = true;
  }

  // Is it a memoryview of sealed memory?
  static bool is_sealed(nb::handle view) {
    if (!PyMemoryView_Check(view.ptr())) return false;
    const nb::object base = viewed(view.ptr());
    return base.is_valid() && nb::isinstance<Memory>(base) && nb::inst_ptr<Memory>(base)->sealed_;
  }

  static void bind(nb::module_& m) {
    static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&Memory::lend)},
                                  {Py_bf_releasebuffer, reinterpret_cast<void*>(&Memory::take_back)},
                                  {0, nullptr}};
    nb::class_<Memory>(m, "Memory", nb::type_slots(slots))
        .def(nb::init<std::size_t>(), nb::arg("bytes"))
        .def("seal", &Memory::seal, "From now on nobody can write to it.");
  }

 private:
  template <class T>
  Memory(Pooled<T> numbers, std::size_t size, const char* format, bool sealed)
      : numbers_(numbers.release()),
        length_(static_cast<Py_ssize_t>(size)),
        item_(sizeof(T)),
        format_(format),
        sealed_(sealed) {}

  template <class T>
  static constexpr const char* format() {
    if constexpr (std::is_same_v<T, std::int64_t>)
      return "q";
    else if constexpr (std::is_same_v<T, std::int32_t>)
      return "i";
    else if constexpr (std::is_same_v<T, double>)
      return "d";
    else if constexpr (std::is_same_v<T, float>)
      return "f";
    else {
      static_assert(std::is_same_v<T, std::uint8_t>);
      return "B";
    }
  }

  static int lend(PyObject* self, Py_buffer* view, int flags) {
    Memory& memory = *nb::inst_ptr<Memory>(self);
    if (memory.sealed_ && (flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
      view->obj = nullptr;
      PyErr_SetString(PyExc_BufferError, "the memory is sealed");
      return -1;
    }
    *view = {};
    view->obj = nb::handle(self).inc_ref().ptr();
    view->buf = memory.numbers_.get();
    view->len = memory.length_ * memory.item_;
    view->itemsize = memory.item_;
    view->readonly = memory.sealed_;
    view->ndim = 1;
    if ((flags & PyBUF_FORMAT) == PyBUF_FORMAT) view->format = const_cast<char*>(memory.format_);
    if ((flags & PyBUF_ND) == PyBUF_ND) view->shape = &memory.length_;
    if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) view->strides = &memory.item_;
    memory.writers_ += !memory.sealed_;
    return 0;
  }

  static void take_back(PyObject* self, Py_buffer* view) {
    nb::inst_ptr<Memory>(self)->writers_ -= !view->readonly;
  }

  std::unique_ptr<void, GiveBack> numbers_;
  Py_ssize_t length_, item_;
  const char* format_;
  std::int64_t writers_ = 0;
  bool sealed_;
};

// An array, and whether nobody can write to it.
template <class T>
struct MaybeSealed {
  Array<const T, 1> array;
  bool sealed = false;
};

}  // namespace skn

namespace nanobind::detail {

template <class T>
struct type_caster<skn::MaybeSealed<T>> {
  using Plain = make_caster<skn::Array<const T, 1>>;
  NB_TYPE_CASTER(skn::MaybeSealed<T>, Plain::Name)

  bool from_python(handle src, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    Plain plain;
    if (!plain.from_python(src, flags, cleanup)) return false;
    value = {plain.value, skn::Memory::is_sealed(src)};
    return true;
  }
};

}  // namespace nanobind::detail
