"""`tf.contrib.learn`: the numbers of words in texts, and the names of modes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
import numpy as np

from graphcore.attrs import Array
from graphcore.errors import InvalidArgumentError
from graphcore.support.files import checked_path, file_bytes
from graphcore.support.replacing import write_file

__all__ = ["CategoricalVocabulary", "ModeKeys", "VocabularyProcessor", "tokenizer"]

_WORD: Final = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|['\w-]+")


class ModeKeys:
    """The names of modes."""

    TRAIN: Final = "train"
    EVAL: Final = "eval"
    INFER: Final = "infer"


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text."""
    for text in iterator:
        yield _WORD.findall(text)


class _State(msgspec.Struct):
    """The contents of a file of a `VocabularyProcessor`."""

    max_document_length: Annotated[int, msgspec.Meta(ge=0, le=1 << 24)]
    min_frequency: int
    words: dict[str, int]


class CategoricalVocabulary:
    """Words with numbers from 1 on, in the order in which they came; 0 stands for all others.

    Args:
        unknown_token: the word of number 0.
        support_reverse: without effect; `reverse` works in any case.
    """

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:  # noqa: S107 - a word, no password
        del support_reverse
        self._words = [unknown_token]
        self._mapping = {unknown_token: 0}
        self._counts: Counter[str] = Counter()
        self._is_frozen = False

    def __len__(self) -> int:
        return len(self._words)

    def freeze(self, freeze: bool = True) -> None:
        """Take no further words; take them again if `freeze` is False."""
        self._is_frozen = freeze

    def get(self, category: str) -> int:
        """The number of a word; a new one for a new word, unless the vocabulary is frozen."""
        if category not in self._mapping:
            if self._is_frozen:
                return 0
            self._mapping[category] = len(self._words)
            self._words.append(category)
        return self._mapping[category]

    def add(self, category: str, count: int = 1) -> None:
        """Count a word."""
        if self.get(category) > 0:
            self._counts[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Number the words again, the most frequent first, without those that are rare.

        Args:
            min_frequency: words that came at most so often are left out.
            max_frequency: words that came at least so often are left out; -1 for none.
        """
        kept = [word for word, count in self._counts.items() if count > min_frequency and not 0 < max_frequency <= count]
        self._words = [self._words[0], *sorted(kept, key=lambda word: (-self._counts[word], word))]
        self._mapping = {word: number for number, word in enumerate(self._words)}
        self._counts = Counter({word: self._counts[word] for word in self._words[1:]})

    def reverse(self, class_id: int) -> str:
        """The word of a number."""
        return self._words[class_id]

    @property
    def counts(self) -> dict[str, int]:
        """The counts of words, in the order of their numbers."""
        return {word: self._counts[word] for word in self._words[1:]}


class VocabularyProcessor:
    """Numbers for the words of texts.

    Args:
        max_document_length: the length of the results; longer texts are cut off, shorter ones filled with 0.
        min_frequency: words that came at most so often are unknown.
        vocabulary: the words known beforehand.
        tokenizer_fn: a function from texts to lists of words.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[str]], Iterable[Sequence[str]]] | None = None,
    ) -> None:
        self.max_document_length, self.min_frequency = max_document_length, min_frequency
        self.vocabulary_ = CategoricalVocabulary() if vocabulary is None else vocabulary
        self._tokens = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Learn the words of texts."""
        del unused_y
        for words in self._tokens(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Sequence[str], unused_y: Any = None) -> Iterator[Array]:
        """Learn the words of texts, and give their numbers."""
        return self.fit(raw_documents, unused_y).transform(raw_documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[Array]:
        """The numbers of the words of each text: [max_document_length], int64."""
        for words in self._tokens(raw_documents):
            numbers = np.zeros(self.max_document_length, np.int64)
            for place, word in enumerate(words[: self.max_document_length]):
                numbers[place] = self.vocabulary_.get(word)
            yield numbers

    def reverse(self, documents: Iterable[Sequence[int]]) -> Iterator[str]:
        """The texts for numbers, with a space between words."""
        for numbers in documents:
            yield " ".join([self.vocabulary_.reverse(int(number)) for number in numbers])

    def save(self, filename: str) -> None:
        """Write the words to a file, in a form of its own."""
        state = {
            "max_document_length": int(self.max_document_length),
            "min_frequency": int(self.min_frequency),
            "words": self.vocabulary_.counts,
        }
        write_file(checked_path(filename), json.dumps(state).encode())

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """The processor that `save` wrote, with the usual tokenizer.

        Raises:
            NotFoundError: there is no such file.
            InvalidArgumentError: the file holds something else, such as a pickle of TensorFlow.
        """
        data = file_bytes(filename)
        try:
            state = msgspec.json.decode(data, type=_State)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidArgumentError(f"required a file written by VocabularyProcessor.save, got {filename}: {error}") from None
        processor = cls(state.max_document_length, state.min_frequency)
        counts = state.words
        for word, count in counts.items():
            processor.vocabulary_.add(word, count)
        processor.vocabulary_.freeze()
        return processor
