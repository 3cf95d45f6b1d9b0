"""The framework of op blocks: parts, type sets, kernel factories, gradient texts."""
