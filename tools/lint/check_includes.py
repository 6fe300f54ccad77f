"""No header of the C++ library is included for nothing: of its names one at least occurs in the file.

A name that is ours too, or that another header has as well, counts: what is told is so, not all is told.

usage: check_includes.py ROOT
"""

import re
import sys

from source_files import finish, read, source_files

# * stands for any letters. Headers that are not here are not looked at.
NAMES = {
    "algorithm": """min max minmax clamp *sort *sort_copy is_* find find_* search* *_of count count_if copy
                    copy_* move_backward fill fill_n generate* transform *_bound equal equal_range
                    binary_search mismatch remove* replace* unique* reverse* rotate* *_element *_permutation
                    swap_ranges for_each* *partition* *_heap shuffle sample set_* includes lexicographical_*
                    adjacent_find *merge iter_swap ranges""",
    "any": "any any_*",
    "array": "array to_array",
    "atomic": "atomic* memory_order*",
    "bit": "bit_* countr_* countl_* popcount has_single_bit endian rotl rotr",
    "bitset": "bitset",
    "cerrno": "errno E[A-Z0-9]{2,}",
    "charconv": "from_chars* to_chars* chars_format",
    "chrono": "chrono* *clock *seconds minutes hours ns us ms",
    "climits": "*_MAX *_MIN *_BIT",
    "cmath": """abs fabs sqrt* cbrt* pow* exp2? expm1 expf log(2|10|1p)?f? ceil* floor* trunc* l?l?round
                l?l?rint fmod* hypot* fma* isnan isinf isfinite nanf? ldexp* frexp* modf* scalbn* ilogb*
                sin* cos* tan* asin* acos* atan* erf* *gamma* signbit copysign* nextafter* remainder*
                nearbyint* M_* NAN INFINITY HUGE_VAL""",
    "complex": "complex*",
    "condition_variable": "condition_variable* cv_status",
    "csignal": "SIG* sig* signal raise",
    "cstddef": "size_t ptrdiff_t byte max_align_t nullptr_t offsetof NULL",
    "cstdint": "int*_t uint*_t INT*_* UINT*_*",
    "cstdio": """FILE *printf *scanf fopen fclose fread fwrite *puts *gets fflush fseek ftell stderr stdout
                 stdin rename remove perror *putc *getc putchar tmpfile popen pclose fileno setvbuf EOF""",
    "cstdlib": """exit _exit _Exit quick_exit abort atexit *getenv malloc calloc realloc free aligned_alloc
                  strto* ato* qsort bsearch rand srand abs labs div EXIT_* system setenv unsetenv mkdtemp
                  mkstemp realpath""",
    "cstring": """memcpy memmove memset memcmp memchr memrchr strlen strnlen strcmp strncmp strcasecmp
                  strcpy strncpy strcat strchr strrchr strstr strtok* strdup strndup strerror* strsignal
                  strspn strcspn strpbrk""",
    "deque": "deque",
    "filesystem": "filesystem",
    "fstream": "*fstream filebuf",
    "functional": """function less* greater* equal_to not_equal_to plus minus multiplies divides modulus
                     bit_* hash ref cref reference_wrapper invoke* bind* mem_fn identity not_fn logical_*
                     placeholders""",
    "iomanip": "setw setfill setprecision setbase quoted put_time get_time",
    "iostream": "cout cerr cin clog",
    "iterator": "*begin *end next prev advance distance *size data empty *inserter *iterator* *sentinel*",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": """*_ptr make_* *_pointer_cast allocat* addressof to_address construct_at destroy*
                 assume_aligned align uninitialized_* *shared_from_this default_delete owner_less""",
    "mutex": "*mutex *lock* call_once once_flag",
    "new": "new nothrow* bad_alloc align_val_t launder hardware_*",
    "numeric": """accumulate iota gcd lcm *reduce inner_product partial_sum adjacent_difference *_scan
                  midpoint""",
    "optional": "optional make_optional nullopt*",
    "queue": "queue priority_queue",
    "random": "*mt19937* *_distribution random_device *_engine minstd*",
    "regex": "*regex*",
    "set": "set multiset",
    "span": "span as_bytes as_writable_bytes dynamic_extent",
    "sstream": "*stringstream stringbuf",
    "string": "*string to_string to_wstring sto* getline char_traits",
    "string_view": "*string_view sv",
    "thread": "*thread*",
    "tuple": "*tuple* tie get apply ignore",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_set unordered_multiset",
    "utility": """move* exchange pair make_pair swap forward in_place* declval as_const *_sequence*
                  to_underlying cmp_* in_range get tuple_size* tuple_element* piecewise_* unreachable""",
    "variant": "variant* visit monostate holds_alternative get get_if in_place_*",
    "vector": "vector",
}
USES = {header: re.compile(r"(?<!\w)(\d*{})(?!\w)".format("|".join(names.replace("*", r"\w*").split())))
        for header, names in NAMES.items()}
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<(\w+)>.*$", re.MULTILINE)
UNREAD = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def for_nothing(text):
    """The headers of the library that the text includes and does not use: [(line, header)]."""
    used = UNREAD.sub('""', INCLUDE.sub("", text))
    return [(text.count("\n", 0, found.start()) + 1, found.group(1)) for found in INCLUDE.finditer(text)
            if found.group(1) in USES and not USES[found.group(1)].search(used)]


def main(root):
    problems = []
    paths = source_files(root, (".cc", ".hpp", ".cu"))
    for path in paths:
        problems += [f"{path}:{line}: includes <{header}> for nothing"
                     for line, header in for_nothing(read(root, path))]
    finish(problems, len(paths), "includes")


if __name__ == "__main__":
    main(sys.argv[1])
